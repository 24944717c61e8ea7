// Package exec has the commands that reach into a running pod: exec, attach, cp, debug,
// port-forward and port.
package exec

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/store"
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
At a terminal ctrl-p ctrl-q detaches, and the command continues. podrun passes a
signal to the command; the second one ends both.

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
			&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; NAME alone takes podrun's own"},
			&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "run it in this `DIRECTORY` instead of the container's"},
			&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "run it as this `USER[:GROUP]`, names of the image or numbers, instead of the container's"},
			detachFlag(),
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	words := c.Args().Slice()
	if c.IsSet("filename") {
		if len(words) == 0 || words[0] != "--" {
			return cmdutil.UsageErrorf("exec", "exec takes either the name of a pod or -f, not both, and after -- a command")
		}
		word, err := podInFile(env, c)
		if err != nil {
			return err
		}
		words = append([]string{word}, words...)
	}
	cut := slices.Index(words, "--")
	switch {
	case cut < 0 && len(words) > 1:
		return cmdutil.UsageErrorf("exec", "exec takes -- between the pod and the command: podrun exec POD -- COMMAND")
	case cut != 1:
		return cmdutil.UsageErrorf("exec", "exec takes the name of one pod, then -- and a command")
	case len(words) == 2:
		return cmdutil.UsageErrorf("exec", "you must specify at least one command for the container")
	}
	return exitcode.InContainer(execIn(env, c, words[0], words[2:]))
}

// podInFile returns the name of the only pod or workload in a file, and sets its namespace.
func podInFile(env *cmdutil.Env, c *cli.Context) (string, error) {
	sources, err := resource.ReadFiles(env, []string{c.String("filename")})
	if err != nil {
		return "", err
	}
	docs, err := resource.Load(sources)
	if err != nil {
		return "", err
	}
	found := append(docs.Pods, docs.Workloads...)
	if len(found) != 1 {
		return "", cmdutil.UsageErrorf("exec", "%s has %d pods and workloads: name one of them", resource.DisplayName(c.String("filename")), len(found))
	}
	o := &found[0]
	word := o.Value.GetName()
	if o.Pod == nil {
		word = kindnames.Display(o.Stored)
	}
	return word, c.Set("namespace", o.Value.GetNamespace())
}

func execIn(env *cmdutil.Env, c *cli.Context, word string, command []string) error {
	p, plan, err := resource.FindPodAndPlan(env, c.String("namespace"), word)
	if err != nil {
		return err
	}
	ct, err := resource.ChooseContainer(env, p, plan, c.String("container"))
	if err != nil {
		return err
	}
	req := wire.ExecRequest{Container: ct.Name, Args: command, User: c.String("user"), Cwd: c.String("workdir")}
	if req.Env, err = variables(env, c.StringSlice("env")); err != nil {
		return err
	}
	if req.Cwd != "" && !path.IsAbs(req.Cwd) {
		return cmdutil.UsageErrorf("exec", "--workdir: %q is not an absolute path", req.Cwd)
	}
	x := &execSession{env: env, pod: p, container: ct.Name, stdin: c.Bool("stdin")}
	if x.keys, err = detachKeys(c); err != nil {
		return err
	}
	if c.Bool("tty") {
		if terminal, ok := tty.File(env.In); ok {
			x.terminal = terminal
			req.TTY, req.Term = true, env.Getenv("TERM")
			cols, rows := tty.Size(terminal)
			req.Cols, req.Rows = uint16(cols), uint16(rows)
		} else {
			// As kubectl: print a message and go on without a terminal.
			fmt.Fprintln(env.ErrOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
	}
	code, err := x.run(c.Context, req)
	return containerExit("exec in", p, code, err)
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

// execSession is one command in a container, run by the CLI.
type execSession struct {
	env      *cmdutil.Env
	pod      store.Pod
	stdin    bool     // forward standard input
	terminal *os.File // the user's terminal, if the command gets one

	container string
	keys      []byte // detach keys
}

// run starts the command, forwards its streams and returns its exit code.
func (x *execSession) run(ctx context.Context, req wire.ExecRequest) (int, error) {
	c := &podclient.Command{
		Pod: x.pod, Container: x.container, Stdin: x.stdin, Terminal: x.terminal, Keys: x.keys,
		In: x.env.In, Out: x.env.Out, Err: x.env.ErrOut, Signals: x.env.Signals,
	}
	return c.Run(ctx, req)
}
