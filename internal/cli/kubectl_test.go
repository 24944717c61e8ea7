package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/report"
)

// kubectlVerbs are the commands of kubectl 1.36, by the headings of its help. A command with subcommands is
// listed with them if podrun has it.
var kubectlVerbs = []struct{ heading, verbs string }{
	{"Basic Commands", "create,create clusterrole,create clusterrolebinding,create configmap,create cronjob,create deployment,create ingress,create job,create namespace,create poddisruptionbudget,create priorityclass,create quota,create role,create rolebinding,create secret docker-registry,create secret generic,create secret tls,create service,create serviceaccount,create token,expose,run,set env,set image,set resources,set selector,set serviceaccount,set subject,explain,get,edit,delete"},
	{"Deploy Commands", "rollout history,rollout pause,rollout restart,rollout resume,rollout status,rollout undo,scale,autoscale"},
	{"Cluster Management Commands", "certificate,cluster-info,top,cordon,uncordon,drain,taint"},
	{"Troubleshooting and Debugging Commands", "describe,logs,attach,exec,port-forward,proxy,cp,auth,debug,events"},
	{"Advanced Commands", "diff,apply,patch,replace,wait,kustomize"},
	{"Settings Commands", "label,annotate,completion"},
	{"Other Commands", "alpha,api-resources,api-versions,config,kuberc,options,plugin,version"},
}

// findVerb returns the command of podrun with the name of a verb; nil: the error of the verb is err.
func findVerb(app *cli.App, verb string) (cmd *cli.Command, err error) {
	path, cmd, rest := cmdline.Find(app, strings.Fields(verb))
	if len(rest) == 0 {
		return cmd, nil
	}
	return nil, cmdline.UnknownCommand(cmd.Subcommands, strings.Join(append([]string{"podrun"}, path...), " "), rest[0])
}

// TestKubectlPage writes what podrun makes of each verb of kubectl.
func TestKubectlPage(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	var b strings.Builder
	b.WriteString("# kubectl's verbs\n\n" + generated)
	b.WriteString(`What podrun makes of the verbs of kubectl 1.36:

- **done**: podrun has the command, with kubectl's form and words; [commands.md](commands.md) lists its options.
- **hint**: podrun refuses the verb, and prints the line that does the same, which is given here.
- **no meaning**: the verb is about a cluster or its API server. podrun refuses it, and prints why, and what there is instead.
`)
	for _, g := range kubectlVerbs {
		fmt.Fprintf(&b, "\n## %s\n\n| kubectl | | podrun |\n|---|---|---|\n", g.heading)
		for verb := range strings.SplitSeq(g.verbs, ",") {
			cmd, err := findVerb(app, verb)
			switch {
			case err == nil:
				fmt.Fprintf(&b, "| `%s` | done | %s |\n", verb, cmd.Usage)
			case strings.Contains(err.Error(), "no meaning"):
				fmt.Fprintf(&b, "| `%s` | no meaning | %s |\n", verb, tableCell(report.Hint(err)))
			default:
				fmt.Fprintf(&b, "| `%s` | hint | %s |\n", verb, tableCell(report.Hint(err)))
			}
		}
	}
	golden.Check(t, referenceDir+"kubectl.md", b.String())
}

func tableCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// TestHintsNameCommands checks that the hint for each verb that podrun does not have has a command of podrun,
// and that podrun has every command and option that it names.
func TestHintsNameCommands(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	line := regexp.MustCompile(`podrun ([a-z-].*?)(?:[;:,|]|$)`)
	for _, g := range kubectlVerbs {
		for verb := range strings.SplitSeq(g.verbs, ",") {
			_, err := findVerb(app, verb)
			if err == nil {
				continue
			}
			hint, found := report.Hint(err), 0
			for _, m := range line.FindAllStringSubmatch(hint, -1) {
				words := strings.Fields(m[1])
				path, cmd, rest := cmdline.Find(app, words)
				if len(path) == 0 && rest[0] != "--help" {
					continue // "podrun has no …"
				}
				found++
				for _, word := range rest {
					name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
					if strings.HasPrefix(word, "-") && word != "-" && name != "help" && cmdline.FindFlag(cmd, name) == nil {
						t.Errorf("%s: the hint %q names the option %s, which %v does not have", verb, hint, word, path)
					}
				}
			}
			if found == 0 {
				t.Errorf("%s: the hint %q has no command of podrun", verb, hint)
			}
		}
	}
}
