package system

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
)

// offerFixes shows the fix of each finding and runs it if the user agrees.
func (o *doctorOptions) offerFixes(ctx context.Context, findings []host.Finding) error {
	answers := bufio.NewReader(o.env.In)
	offered := 0
	for _, f := range findings {
		fix := f.Fix()
		if fix == nil {
			continue
		}
		offered++
		command, shown := fixCommand(ctx, fix)
		fmt.Fprintf(o.env.Out, "%s: %s\n  %s\n", f.Name, report.Escape(f.Detail), report.Escape(shown))
		if command == nil {
			fmt.Fprintln(o.env.Out, "  sudo is not installed: run this command as root")
			continue
		}
		fmt.Fprint(o.env.Out, "Run this command? [y/N] ")
		answer, err := answers.ReadString('\n')
		if err != nil {
			fmt.Fprintln(o.env.Out)
		}
		if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
			continue
		}
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, o.env.Out, o.env.ErrOut
		if err := command.Run(); err != nil {
			return report.New(report.Failure, "podrun doctor shows what is still missing", "run %s: %w", shown, err)
		}
		if fix.Then != "" {
			fmt.Fprintf(o.env.Out, "  then: %s\n", report.Escape(fix.Then))
		}
	}
	if offered == 0 {
		fmt.Fprintln(o.env.Out, "podrun doctor --fix has nothing to offer")
	}
	return nil
}

// fixCommand returns the command of a fix, and how it is typed. Without the privileges for it the command is
// nil.
func fixCommand(ctx context.Context, f *host.Fix) (command *exec.Cmd, shown string) {
	if !f.Root || os.Geteuid() == 0 {
		return exec.CommandContext(ctx, "sh", "-c", f.Command), f.Command
	}
	shown = "sudo sh -c '" + strings.ReplaceAll(f.Command, "'", `'\''`) + "'"
	if _, err := exec.LookPath("sudo"); err != nil {
		return nil, "as root: " + f.Command
	}
	return exec.CommandContext(ctx, "sudo", "sh", "-c", f.Command), shown
}
