package cmdline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/editdistance"
	"github.com/podrun/podrun/internal/report"
)

// UnknownCommand returns an error with the equivalent of a command of kubectl, docker or systemctl, or
// with the most similar command, if one is similar.
func UnknownCommand(cmds []*cli.Command, parent, word string) error {
	hint := parent + " --help lists the commands"
	if instead := clusterCommand(parent, word); instead != "" {
		return report.New(report.Usage, instead, "%q is not a command of %s: it has no meaning on one machine", word, parent)
	}
	elsewhere := foreignCommand(word)
	if parent == "podrun" && elsewhere != "" || parent == "podrun image" && word == "build" {
		hint = elsewhere
	} else if below := foreignSubcommand(parent, word); below != "" {
		hint = below
	} else {
		var names []string
		for _, c := range cmds {
			names = append(names, c.Name)
		}
		if name := nearest(word, names); name != "" {
			hint = fmt.Sprintf("did you mean %s %s?", parent, name)
		}
	}
	return report.New(report.Usage, hint, "%q is not a command of %s", word, parent)
}

// NeedSubcommand returns the action of a command that has subcommands and does nothing alone. text is the
// error without a word.
func NeedSubcommand(command, text string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return UnknownCommand(c.Command.Subcommands, "podrun "+command, c.Args().First())
		}
		return cmdutil.UsageErrorf(command, "%s", text)
	}
}

// IfSet returns an action that runs action if the flag is set without arguments, and otherwise the other one.
func IfSet(flag string, action, otherwise cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.IsSet(flag) && !c.Args().Present() {
			return action(c)
		}
		return otherwise(c)
	}
}

// foreignCommand returns a hint for commands of kubectl, podman, docker and systemctl that have another
// name in podrun, or "".
func foreignCommand(word string) string {
	switch word {
	case "play", "kube":
		return "podrun up FILE runs the pods of a manifest"
	case "build", "buildx":
		return "podrun build DIRECTORY -t NAME builds an image with the builder that is installed"
	case "rm", "remove":
		return "podrun down POD stops and removes a pod"
	case "inspect":
		return "podrun describe POD and podrun get POD -o json show all details of a pod"
	case "expose":
		return `a Service does that: echo '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}' | podrun apply -f -`
	case "stats":
		return "podrun top shows the resource usage of pods"
	case "list", "ls", "pods", "status":
		return "podrun ps lists the pods"
	case "load", "import", "save", "push", "tag", "history", "prune":
		return "podrun image " + word + " does that"
	case "install", "uninstall", "enable", "disable":
		return "podrun systemd install FILE and podrun systemd uninstall NAME do that"
	case "info", "cluster-info", "system", "machine":
		return "there is one node, this machine: podrun doctor checks it, podrun get all -A lists what runs, podrun image prune frees disk space"
	}
	return moreForeignCommands(word)
}

// moreForeignCommands continues foreignCommand with commands that podrun replaces by other means, or does
// not have.
func moreForeignCommands(word string) string {
	switch word {
	case "autoscale":
		return "podrun does not scale by itself: podrun scale --replicas=3 deployment/NAME sets the number of pods"
	case "plugin", "alpha":
		return "podrun has no plugins and no commands on trial: podrun --help lists the commands"
	case "options":
		return "podrun --help shows the options of all commands, podrun COMMAND --help the options of one command"
	case "daemon", "daemon-reload":
		return "podrun has no daemon: podrun up FILE runs a pod, podrun systemd install FILE makes a unit of it"
	case "reload":
		return "podrun up FILE or podrun apply -f FILE applies a changed manifest"
	case "is-active", "container", "pod":
		return "podrun ps lists the pods, podrun describe POD shows its containers"
	case "deploy", "stack", "service":
		return "podrun up FILE runs the pods of a manifest, Deployments and Services included"
	case "network":
		return "the pods of a user share a network; podrun get services lists the names in it, podrun port POD the ports"
	case "secret", "configmap", "cm", "namespace", "ns":
		return "podrun create " + word + " creates one, podrun get " + word + " lists them"
	case "healthcheck":
		return "podrun describe POD shows the probes of containers"
	case "rename":
		return "change metadata.name in the manifest; podrun down POD removes the one of the old name"
	case "generate":
		return "podrun get POD -o yaml prints a manifest, podrun systemd show FILE a unit"
	case "export", "mount":
		return "podrun cp POD:/ - writes the files of a container as a tar"
	case "commit":
		return "podrun cp POD:/ - writes the files of a container as a tar, from which podrun image import creates an image"
	case "search":
		return "podrun pull NAME fetches an image; a registry's own page lists those it has"
	case "sh", "bash", "shell", "ssh", "enter":
		return "podrun exec -it POD -- sh runs a shell in a pod"
	}
	return ""
}

// clusterCommand returns a hint for words that kubectl has after parent and that have no meaning on one
// machine, or "".
func clusterCommand(parent, word string) string {
	if parent == "podrun create" {
		hint := ""
		switch k := kindnames.Unsupported(word); {
		case k != nil:
			hint = k.Hint
		case word == "token": // of an account
			hint = kindnames.Unsupported("role").Hint
		case word == "serviceaccount":
			hint = "podrun create -f FILE creates one, for its imagePullSecrets: otherwise it has no meaning here"
		default:
			return ""
		}
		return hint + "; podrun create --help lists what it creates"
	}
	if parent != "podrun" {
		return ""
	}
	switch word {
	case "config", "context", "kuberc":
		return "podrun works on this machine only; podrun ps -n NAMESPACE names a namespace, and PODRUN_NAMESPACE one for all commands"
	case "cordon", "uncordon", "drain", "taint", "node", "swarm":
		return "there is one node, this machine: podrun stop --all stops the pods, podrun doctor checks the machine; podrun node drain drains a node of a cluster"
	case "auth":
		return "podrun has no API server: a pod has at most the rights of its user; podrun doctor shows what this user may do"
	case "certificate":
		return "podrun has no API server that signs; podrun create secret tls NAME --cert=FILE --key=FILE stores a certificate"
	case "proxy":
		return "podrun has no API server; podrun ui shows the pods on a web page, podrun port-forward POD PORT reaches a pod"
	case "api-versions":
		return "podrun has no API server; podrun explain KIND shows the version of a kind"
	}
	return ""
}

// foreignSubcommand returns a hint for words that are no subcommand of parent, or "".
func foreignSubcommand(parent, word string) string {
	switch parent {
	case "podrun create secret":
		return "podrun create secret generic NAME creates one from files and values"
	case "podrun create":
		if _, _, kind := kindnames.ParseObjects([]string{word}); kind || word == "pod" {
			return "write a manifest; podrun create -f FILE creates its objects"
		}
	case "podrun set":
		return "podrun edit KIND/NAME changes an object in an editor, podrun patch KIND/NAME -p PATCH by a patch"
	case "podrun volume":
		if word == "create" {
			return "a PersistentVolumeClaim in a manifest creates one: podrun apply -f FILE"
		}
	case "podrun systemd":
		if slices.Contains([]string{"start", "stop", "restart", "status", "enable", "disable"}, word) {
			return "systemctl --user " + word + " podrun@NAME does that"
		}
	}
	return ""
}

// nearest returns the name that word probably stands for, or "". A third of its letters may be wrong, at
// most two.
func nearest(word string, names []string) string {
	best, found := min(2, (len(word)+1)/3)+1, ""
	for _, name := range names {
		if d := editdistance.Of(word, name); d < best {
			best, found = d, name
		}
	}
	return found
}

// badValue matches the library's error for an option value of the wrong type.
var badValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): .*$`)
})

// UsageError rewrites the flag parser's errors for the command cmd.
func UsageError(command string, cmd *cli.Command) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		text, hint := err.Error(), command+" --help"
		if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
			text = "unknown option " + dashed(name)
			if meant := nearestOption(cmd, name); meant != "" {
				hint = "did you mean " + meant + "? " + hint + " lists the options"
			}
			if there := foreignOption(command, name); there != "" {
				hint = there
			}
		}
		if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
			text = "option " + dashed(strings.TrimPrefix(name, "-")) + " needs a value"
		}
		if m := badValue().FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("option %s cannot be %s%s", dashed(m[2]), m[1], expectedValue(FindFlag(cmd, m[2])))
		}
		return report.New(report.Usage, hint, "%s", text)
	}
}

// nearestOption returns the long option that name probably stands for or is a prefix of, or "".
func nearestOption(cmd *cli.Command, name string) string {
	var names []string
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if len(n) == 1 {
				continue
			}
			if len(name) > 2 && strings.HasPrefix(n, name) {
				return dashed(n)
			}
			names = append(names, n)
		}
	}
	if found := nearest(name, names); found != "" {
		return dashed(found)
	}
	return ""
}

// expectedValue returns a description of an option's values.
func expectedValue(f cli.Flag) string {
	switch f.(type) {
	case *cli.DurationFlag:
		return ": use a duration such as 90s, 5m or 2h"
	case *cli.IntFlag, *cli.Int64Flag:
		return ": use a whole number"
	case *cli.BoolFlag:
		return ": use true or false"
	case *cli.GenericFlag: // --dry-run
		return ": use none, client or server"
	}
	return ""
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// foreignOption returns a hint for options of kubectl, podman and docker that a command does not have.
func foreignOption(command, option string) string {
	switch {
	case strings.HasPrefix(command, "podrun systemd") && slices.Contains([]string{"n", "namespace"}, option):
		return "set metadata.namespace in the manifest, which the unit runs unchanged"
	case command == "podrun get" && slices.Contains([]string{"a", "all"}, option):
		return command + " lists pods that have ended too; -A lists the pods of all namespaces"
	}
	return ""
}
