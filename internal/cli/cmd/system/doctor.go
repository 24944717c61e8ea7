// Package system has the commands about podrun and the machine: doctor, version, completion and
// man.
package system

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
)

// NewDoctorCommand returns the command doctor.
func NewDoctorCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check whether this machine can run pods",
		Description: `Checks what pods require and prints one line for each check: its level, its name
and the result; after ->, the command that solves the problem.

  ok        no problem
  note      information; pods run without restriction
  warning   pods run, but something does not work
  failure   no pod can run; podrun up fails with the same message

The exit code is 0 if pods can run, 125 if they cannot. doctor changes nothing,
uses no network, and gives up on a check that hangs. With --fix it shows the
command for each problem, and runs it if you answer y; as root by sudo.

Examples:
  podrun doctor
  podrun doctor | grep -v ^ok
  podrun doctor -o json
  podrun doctor --fix
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT`: json"},
			&cli.BoolFlag{Name: "fix", Usage: "offer to run the command that solves each problem"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &doctorOptions{jsonOptions: jsonOptions{env: env}} }),
	}
}

type doctorOptions struct {
	jsonOptions
	fix bool
}

// Complete implements cmdutil.Command.
func (o *doctorOptions) Complete(c *cli.Context) error {
	o.fix = c.Bool("fix")
	return o.jsonOptions.Complete(c)
}

// Validate implements cmdutil.Command.
func (o *doctorOptions) Validate() error {
	if o.fix && o.formatted {
		return cmdutil.UsageErrorf("doctor", "--fix and --output are mutually exclusive")
	}
	return o.jsonOptions.Validate()
}

func (o *doctorOptions) Run(ctx context.Context) error {
	env := o.env
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var findings []host.Finding
	err := cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		findings = env.Deps.DiagnoseHost(ctx, env.HostSetup())
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case o.fix:
		return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error { return o.offerFixes(ctx, findings) })
	case o.formatted:
		err = printDiagnosis(env, findings)
	default:
		err = writeFindings(env.Out, findings, tty.Colour(env.Out, env.Getenv))
	}
	if err != nil {
		return err
	}
	if host.FirstFailure(findings) != nil {
		return &exitcode.Error{Code: exitcode.Internal}
	}
	return nil
}

// Diagnosis is the output of -o json. docs/reference/doctor.md describes it: fields are added to it,
// never renamed or removed.
type Diagnosis struct {
	Version string         `json:"version"` // of podrun
	CanRun  bool           `json:"canRun"`  // pods can run here
	Summary string         `json:"summary"`
	Probes  []host.Finding `json:"probes"`
}

func printDiagnosis(env *cmdutil.Env, findings []host.Finding) error {
	e := json.NewEncoder(env.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(Diagnosis{version(), host.FirstFailure(findings) == nil, summary(findings), findings})
}

// writeFindings prints one line for each finding, in columns, and the summary.
func writeFindings(w io.Writer, findings []host.Finding, colour bool) error {
	level, name := 0, 0
	for _, f := range findings {
		level, name = max(level, len(f.Level)), max(name, len(f.Name))
	}
	var b strings.Builder
	for _, f := range findings {
		word := fmt.Sprintf("%-*s", level, f.Level)
		if colour {
			word = levelColour(f.Level) + word + tty.Reset
		}
		fmt.Fprintf(&b, "%s  %-*s  %s", word, name, f.Name, report.Escape(f.Detail))
		if f.Hint != "" {
			fmt.Fprintf(&b, " -> %s", report.Escape(f.Hint))
		}
		b.WriteString("\n")
	}
	b.WriteString(summary(findings) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// levelColour returns the colour of a level: green, cyan, yellow or red.
func levelColour(l host.Level) string {
	switch l {
	case host.OK:
		return "\x1b[32m"
	case host.Note:
		return "\x1b[36m"
	case host.Warning:
		return "\x1b[33m"
	}
	return "\x1b[31m"
}

// summary returns the last line.
func summary(findings []host.Finding) string {
	n := map[host.Level]int{}
	for _, f := range findings {
		n[f.Level]++
	}
	verdict := "pods can run here"
	if n[host.Failure] > 0 {
		verdict = "no pod can run here"
	}
	return fmt.Sprintf("%s: %s, %s, %s, %d ok", verdict,
		plural(n[host.Failure], "failure"), plural(n[host.Warning], "warning"), plural(n[host.Note], "note"), n[host.OK])
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
