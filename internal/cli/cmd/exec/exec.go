// Package exec has the commands that reach into a running pod: exec, attach, cp, debug,
// port-forward and port.
package exec

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/wire"
)

// NewCommand returns the command exec.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a command in a container",
		ArgsUsage: "POD | -f FILE -- COMMAND [ARG...]",
		Description: `Runs a command in a running container and exits with its exit code. The command
never gets podrun's own terminal or files: its input and output are passed on.
At a terminal ctrl-p ctrl-q detaches, and the command continues. Without -- a
warning is printed, and options after the command are the command's. The first
signal to podrun is passed to the command; a second one kills the command and
ends podrun.

Examples:
  podrun exec web -- cat /etc/hosts
  podrun exec -it web -c frontend -- sh
  podrun exec deployment/web -- hostname
  podrun exec -f web.yaml -- date
  podrun exec -u 1000 -w /srv -e LANG=C web -- ls
  tar c . | podrun exec -i web -- tar x -C /data
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "filename", Aliases: []string{"f"}, Usage: "run it in the pod, or the workload, of this `FILE`"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "run it in this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "pass on standard input"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give the command a terminal"},
			&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; NAME alone takes the value from podrun's own environment"},
			&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "run it in this `DIRECTORY` instead of the container's"},
			&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "run it as this `USER[:GROUP]`, names of the image or numbers, instead of the container's"},
			detachFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &execOptions{env: env} }),
	}
}

type execOptions struct {
	env                        *cmdutil.Env
	namespace, container, file string
	words                      []string // [POD] -- COMMAND
	stdin, tty                 bool
	variables                  []string // NAME=VALUE or NAME
	user, workdir, detachKeys  string
	keys                       []byte // detachKeys, parsed
}

func (o *execOptions) Complete(c *cli.Context) error {
	o.namespace, o.container, o.file, o.words = c.String("namespace"), c.String("container"), c.String("filename"), c.Args().Slice()
	o.stdin, o.tty, o.variables = c.Bool("stdin"), c.Bool("tty"), c.StringSlice("env")
	o.user, o.workdir, o.detachKeys = c.String("user"), c.String("workdir"), c.String("detach-keys")
	if !c.IsSet("filename") && len(o.words) > 1 && slices.Index(o.words[:min(3, len(o.words))], "--") < 0 { // as kubectl did
		fmt.Fprintln(o.env.ErrOut, "podrun exec [POD] [COMMAND] is DEPRECATED. Use podrun exec [POD] -- [COMMAND] instead.")
		o.words = slices.Insert(o.words, 1, "--")
	}
	if c.IsSet("filename") {
		if len(o.words) == 0 || o.words[0] != "--" {
			return cmdutil.UsageErrorf("exec", "exec requires either the name of a pod or -f, and a command after --")
		}
		return o.readFile()
	}
	return nil
}

func (o *execOptions) Validate() (err error) {
	cut := slices.Index(o.words, "--")
	switch {
	case cut != 1:
		return cmdutil.UsageErrorf("exec", "exec requires the name of one pod, then -- and a command")
	case len(o.words) == 2:
		return cmdutil.UsageErrorf("exec", "you must specify at least one command for the container")
	case o.workdir != "" && !path.IsAbs(o.workdir):
		return cmdutil.UsageErrorf("exec", "--workdir: %q is not an absolute path", o.workdir)
	}
	o.keys, err = parseDetachKeys("exec", o.detachKeys)
	return err
}

func (o *execOptions) Run(ctx context.Context) error { return exitcode.InContainer(o.run(ctx)) }

// readFile takes the name and the namespace of the only pod or workload in a file.
func (o *execOptions) readFile() error {
	sources, err := resource.ReadFiles(o.env, []string{o.file})
	if err != nil {
		return err
	}
	docs, err := resource.Load(sources)
	if err != nil {
		return err
	}
	if err := resource.RefuseGenerated(docs, "exec"); err != nil {
		return err
	}
	found := append(docs.Pods, docs.Workloads...)
	if len(found) != 1 {
		return cmdutil.UsageErrorf("exec", "%s has %d pods and workloads: name one of them", resource.DisplayName(o.file), len(found))
	}
	object := &found[0]
	word := object.Value.GetName()
	if object.Pod == nil {
		word = kindnames.Display(object.Stored)
	}
	o.words, o.namespace = append([]string{word}, o.words...), object.Value.GetNamespace()
	return nil
}

func (o *execOptions) run(ctx context.Context) error {
	p, plan, err := resource.FindPodAndPlan(o.env, o.namespace, o.words[0])
	if err != nil {
		return err
	}
	ct, err := podclient.ChooseContainer(o.env.ErrOut, p, plan, o.container)
	if err != nil {
		return err
	}
	req := wire.ExecRequest{Container: ct.Name, Args: o.words[2:], User: o.user, Cwd: o.workdir}
	if req.Env, err = variables(o.env, o.variables); err != nil {
		return err
	}
	x := &podclient.Command{
		Pod: p, Container: ct.Name, Stdin: o.stdin, Keys: o.keys,
		In: o.env.In, Out: o.env.Out, Err: o.env.ErrOut, Signals: o.env.Signals,
	}
	if o.tty {
		if terminal, ok := tty.File(o.env.In); ok {
			x.Terminal = terminal
			req.TTY, req.Term = true, o.env.Getenv("TERM")
			cols, rows := tty.Size(terminal)
			req.Cols, req.Rows = uint16(cols), uint16(rows)
		} else {
			// As kubectl: print a message and go on without a terminal.
			fmt.Fprintln(o.env.ErrOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
	}
	code, err := x.Run(ctx, req)
	return podclient.ExitError("exec in", p, code, err)
}

// variables parses NAME=VALUE. A NAME alone takes its value from podrun's environment.
func variables(f *cmdutil.Env, words []string) ([]string, error) {
	var env []string
	for _, word := range words {
		name, _, whole := strings.Cut(word, "=")
		if name == "" {
			return nil, cmdutil.UsageErrorf("exec", "--env: %q has no name", word)
		}
		if !whole {
			word += "=" + f.Getenv(name)
		}
		env = append(env, word)
	}
	return env, nil
}
