package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/scriptcmd"
)

// kubectlTable returns the table of kubectl's verbs, whose command lines TestKubectlTable of test/script executes.
func kubectlTable(t *testing.T) []scriptcmd.Section {
	t.Helper()
	archive, err := txtar.ParseFile("../../" + scriptcmd.KubectlTable)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := scriptcmd.ParseTable(string(archive.Comment))
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

// findVerb returns the command of podrun with the name of a verb; nil: the error of the verb is err.
func findVerb(app *cli.App, verb string) (cmd *cli.Command, err error) {
	path, cmd, rest := cmdline.Find(app, strings.Fields(verb))
	if len(rest) == 0 {
		return cmd, nil
	}
	return nil, cmdline.UnknownCommand(cmd.Subcommands, strings.Join(append([]string{"podrun"}, path...), " "), rest[0])
}

// TestKubectlPage writes what podrun makes of each verb of kubectl, with the command lines that are executed.
func TestKubectlPage(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	var b strings.Builder
	b.WriteString("# kubectl's verbs\n\n" + generated)
	b.WriteString(`What podrun makes of the verbs of kubectl 1.36. The command lines on this page are executed by a test, with the binary and real pods;
the test checks their output and exit codes.

- **done**: podrun has the command, with kubectl's form and words, at least in the forms that are given; [commands.md](commands.md) lists its options.
- **hint**: podrun refuses the verb, and prints the line that does the same, which is given here.
- **no meaning**: the verb is about a cluster or its API server. podrun refuses it, and prints why, and what there is instead.
`)
	for _, section := range kubectlTable(t) {
		fmt.Fprintf(&b, "\n## %s\n\n| kubectl | | podrun | executed |\n|---|---|---|---|\n", section.Heading)
		for _, verb := range verbsOf(section) {
			cmd, err := findVerb(app, verb.Verb)
			text, status := "", "done"
			switch {
			case err == nil:
				text = cmd.Usage
			case strings.Contains(err.Error(), "no meaning"):
				text, status = report.Hint(err), "no meaning"
			default:
				text, status = report.Hint(err), "hint"
			}
			if status != verb.Status {
				t.Errorf("%s: the table says %s, the command tree %s", verb.Verb, verb.Status, status)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", verb.Verb, status, tableCell(text), tableCell(linesOf(section, verb.Verb)))
		}
	}
	golden.Check(t, referenceDir+"kubectl.md", b.String())
}

// verbsOf returns a row for each verb of a section.
func verbsOf(section scriptcmd.Section) (rows []scriptcmd.Row) {
	for _, row := range section.Rows {
		if row.Verb != "" && (len(rows) == 0 || rows[len(rows)-1].Verb != row.Verb) {
			rows = append(rows, row)
		}
	}
	return rows
}

// linesOf returns the command lines that are executed for a verb.
func linesOf(section scriptcmd.Section, verb string) string {
	var lines []string
	for _, row := range section.Rows {
		if row.Verb == verb && row.Kind != scriptcmd.Prepare {
			line := "`" + row.Line + "`"
			if row.Code != 0 && row.Status == "done" {
				line += fmt.Sprintf(" (ends with %d)", row.Code)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "<br>")
}

func tableCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// TestHintsNameCommands checks that the hint for each verb that podrun does not have has a command of podrun,
// and that podrun has every command and option that it names.
func TestHintsNameCommands(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	line := regexp.MustCompile(`podrun ([a-z-].*?)(?:[;:,|]|$)`)
	for _, section := range kubectlTable(t) {
		for _, row := range verbsOf(section) {
			verb := row.Verb
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
