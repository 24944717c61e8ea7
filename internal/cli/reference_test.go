package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/golden"
)

// The reference pages are what the program itself says.

const referenceDir = "../../docs/reference/"

const generated = "<!-- Generated: go test ./internal/cli -update -->\n\n"

func TestExitCodesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Exit codes\n\n" + generated + "| code | when |\n|---|---|\n")
	for _, e := range exitcode.Table {
		fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.When)
	}
	b.WriteString("\n`exec` otherwise ends with the exit code of the command it ran, 128+n if signal n killed it.\n")
	golden.Check(t, referenceDir+"exit-codes.md", b.String())
}

func TestCommandsPage(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated)
	b.WriteString("Options may stand before the command, and before or after its other arguments. Results go to stdout, everything else to stderr. " +
		"[exit-codes.md](exit-codes.md) lists the exit codes.\n")
	everyCommand(app, func(path []string, cmd *cli.Command) {
		fmt.Fprintf(&b, "\n## podrun %s\n\n```\n%s```\n", strings.Join(path, " "), cmdline.Help(path, cmd, app))
	})
	golden.Check(t, referenceDir+"commands.md", b.String())
}

func TestExitCodesAreDistinct(t *testing.T) {
	seen := map[int]bool{}
	for _, e := range exitcode.Table {
		if seen[e.Code] {
			t.Errorf("code %d has two meanings", e.Code)
		}
		seen[e.Code] = true
	}
}
