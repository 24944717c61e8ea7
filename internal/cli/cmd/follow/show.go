package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func lsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the sets",
		Description: `Lists the sets of this machine with the version that runs.

Examples:
  podrun follow ls
`,
		Flags:  []cli.Flag{formatFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &showOptions{env: env, command: "ls", print: printSets} }),
	}
}

func statusCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show the version of a set, its objects, and what failed",
		ArgsUsage: "[NAME...]",
		Description: `Shows where a set comes from, which version runs, whether a change is under way,
which version has failed and why, and the names of its pods and objects.

Examples:
  podrun follow status
  podrun follow status site -o json
`,
		Flags:  []cli.Flag{formatFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &showOptions{env: env, command: "status", print: printStatus} }),
	}
}

func historyCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show the changes of a set",
		ArgsUsage: "NAME",
		Description: `Shows the last 20 changes of a set, the oldest first.

Examples:
  podrun follow history site
`,
		Flags:  []cli.Flag{formatFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &showOptions{env: env, command: "history", print: printHistory} }),
	}
}

func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: json"}
}

// showOptions are the command line of a command that shows sets.
type showOptions struct {
	env     *cmdutil.Env
	command string // ls, status or history
	names   []string
	format  string
	print   func(env *cmdutil.Env, sets []set) error
}

// set is a set for output.
type set struct {
	Name     string `json:"name"`
	Changing bool   `json:"changing"` // a process changes it now
	*store.Set
}

// Complete implements cmdutil.Command.
func (o *showOptions) Complete(c *cli.Context) error {
	o.names, o.format = c.Args().Slice(), c.String("output")
	return nil
}

// Validate implements cmdutil.Command.
func (o *showOptions) Validate() error {
	switch {
	case o.format != "" && o.format != "json":
		return cmdutil.UsageErrorf("follow "+o.command, "-o cannot be %q: use json", o.format)
	case o.command == "ls" && len(o.names) > 0:
		return cmdutil.UsageErrorf("follow ls", "follow ls accepts no arguments")
	case o.command == "history" && len(o.names) != 1:
		return cmdutil.UsageErrorf("follow history", "follow history requires the name of a set")
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *showOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	names := o.names
	if len(names) == 0 {
		if names, err = dirs.Sets(); err != nil {
			return err
		}
	}
	sets := []set{}
	var errs []error
	for _, name := range names {
		s, err := findSet(dirs, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sets = append(sets, set{name, dirs.SetChanging(name), s})
	}
	if o.format == "json" {
		text, err := json.MarshalIndent(sets, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the sets: %w", err)
		}
		fmt.Fprintf(o.env.Out, "%s\n", text)
	} else if len(sets) > 0 {
		errs = append(errs, o.print(o.env, sets))
	} else if len(errs) == 0 {
		fmt.Fprintln(o.env.ErrOut, "podrun: there is no set")
	}
	return errors.Join(errs...)
}

// findSet reads the record of a set. A set of podrun update, whose name has slashes, is none.
func findSet(dirs store.Dirs, name string) (s *store.Set, err error) {
	if resource.CheckSetName(name) == nil {
		s, err = dirs.Set(name)
	}
	if err == nil && s == nil {
		err = report.New(report.Failure, "podrun follow ls lists the sets", "there is no set %q", name)
	}
	return s, err
}

func printSets(env *cmdutil.Env, sets []set) error {
	rows := [][]string{printers.SetHeader()}
	now := time.Now()
	for _, s := range sets {
		rows = append(rows, printers.SetRow(s.Name, s.Set, s.Changing, now))
	}
	return env.PrintTable(rows)
}

func printStatus(env *cmdutil.Env, sets []set) error {
	for i, s := range sets {
		if i > 0 {
			fmt.Fprintln(env.Out)
		}
		fmt.Fprintf(env.Out, "Name:     %s\nSource:   %s\nStatus:   %s\n", s.Name, report.Escape(s.Source), printers.SetStatus(s.Set, s.Changing))
		printVersion(env, "Current:  ", s.Current)
		if s.Next != nil {
			printVersion(env, "Next:     ", s.Next)
		}
		if s.Former != nil {
			printVersion(env, "Former:   ", s.Former)
		}
		for _, r := range s.Rejected {
			fmt.Fprintf(env.Out, "Rejected: %s at %s: %s\n", r.Digest, r.At.Local().Format(time.DateTime), report.Escape(r.Reason))
		}
		if s.Current != nil {
			fmt.Fprintf(env.Out, "Objects:  %s\n", strings.Join(membersOf(s.Current), "\n          "))
		}
	}
	return nil
}

func printVersion(env *cmdutil.Env, title string, v *store.SetVersion) {
	if v == nil {
		fmt.Fprintf(env.Out, "%snone\n", title)
		return
	}
	text := v.Digest
	for _, more := range []string{v.Version, v.Revision} {
		if more != "" {
			text += " " + report.Escape(more)
		}
	}
	if !v.Created.IsZero() {
		text += " made at " + v.Created.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(env.Out, "%s%s\n", title, text)
}

// membersOf returns the names of a version's pods and objects.
func membersOf(v *store.SetVersion) (names []string) {
	for _, m := range v.Members {
		name := m.String()
		if m.Namespace != "" && m.Namespace != "default" {
			name += " -n " + m.Namespace
		}
		names = append(names, name)
	}
	return names
}

func printHistory(env *cmdutil.Env, sets []set) error {
	rows := [][]string{{"TIME", "RESULT", "VERSION", "DIGEST", "REASON"}}
	for _, c := range sets[0].History {
		rows = append(rows, []string{c.At.Local().Format(time.DateTime), string(c.Result), printers.SetVersionName(c.Version, c.Revision, c.Digest), printers.ShortDigest(c.Digest), cmp.Or(printers.FirstLine(c.Reason), "-")})
	}
	return env.PrintTable(rows)
}
