package exec

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/attach"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewAttachCommand returns the command attach.
func NewAttachCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "attach",
		Usage:     "attach to a running container",
		ArgsUsage: "POD",
		Description: `Shows the output of a running container from now on and, with -i, passes on
standard input, if the manifest has stdin: true. With tty: true in the manifest
it attaches to the container's terminal; ctrl-p ctrl-q detaches. It exits with
the container, and with its exit code. Several clients may attach; a slow client
loses output and never blocks the others. The container continues when they
detach. Ctrl-C ends only attach; with -i and tty: true, the container's terminal
receives it.

Examples:
  podrun attach web
  podrun attach -it shell
  podrun attach web -c worker
  date | podrun attach -i reader
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "attach to this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "pass on standard input"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "standard input is a terminal, and the manifest has tty: true"},
			detachFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but the output of the container"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &attachOptions{env: env} }),
	}
}

func detachFlag() cli.Flag {
	return &cli.StringFlag{Name: "detach-keys", Value: tty.DefaultDetachKeys, Usage: "detach by these `KEYS`: letters or ctrl-LETTER, with commas; \"\" for none"}
}

// parseDetachKeys parses the value of --detach-keys.
func parseDetachKeys(command, text string) ([]byte, error) {
	keys, err := tty.ParseKeys(text)
	if err != nil {
		return nil, cmdutil.UsageErrorf(command, "--detach-keys: %v", err)
	}
	return keys, nil
}

// attachOptions are the options of one attach.
type attachOptions struct {
	env                  *cmdutil.Env
	namespace, container string
	words                []string
	stdin, tty, quiet    bool
	fromStart            bool // also print earlier output
	detachKeys           string
	keys                 []byte // detachKeys, parsed
}

func (o *attachOptions) Complete(c *cli.Context) error {
	o.namespace, o.container, o.words = c.String("namespace"), c.String("container"), c.Args().Slice()
	o.stdin, o.tty, o.quiet, o.detachKeys = c.Bool("stdin"), c.Bool("tty"), c.Bool("quiet"), c.String("detach-keys")
	return nil
}

func (o *attachOptions) Validate() (err error) {
	if len(o.words) != 1 {
		return cmdutil.UsageErrorf("attach", "attach requires the name of one pod")
	}
	o.keys, err = parseDetachKeys("attach", o.detachKeys)
	return err
}

func (o *attachOptions) Run(ctx context.Context) error {
	p, plan, err := resource.FindPodAndPlan(o.env, o.namespace, o.words[0])
	if err != nil {
		return exitcode.InContainer(err)
	}
	ct, err := podclient.ChooseContainer(o.env.ErrOut, p, plan, o.container)
	if err == nil {
		err = attachable(p, ct, o.stdin)
	}
	if err == nil {
		err = o.attach(ctx, p, ct)
	}
	return exitcode.InContainer(err)
}

// attach attaches to a running container, and returns an error with the container's exit code.
func (o *attachOptions) attach(ctx context.Context, p store.Pod, ct *pod.Container) error {
	a := &attach.Session{Env: o.env, Pod: p, Container: ct, Stdin: o.stdin, FromStart: o.fromStart, Keys: o.keys, Quiet: o.quiet}
	if a.Terminal = terminalFor(o.env, ct, a.Stdin); a.Terminal == nil && o.tty {
		reason := "input is not a terminal or the right kind of file"
		if !ct.TTY {
			reason = "container " + ct.Name + " did not allocate one"
		}
		fmt.Fprintln(o.env.ErrOut, "Unable to use a TTY - "+reason) // as kubectl: a message, then go on without
	}
	code, err := a.Run(ctx)
	return podclient.ExitError("attach to", p, code, err)
}

// attachable returns an error if the manifest does not allow an attach, or the container will not run
// again.
func attachable(p store.Pod, c *pod.Container, stdin bool) error {
	st, err := podview.StatusOf(p)
	switch {
	case err != nil:
		return err
	case st.Phase.Terminal():
		return report.New(report.Failure, "podrun logs "+p.Name+" shows what it has written", "cannot attach a container in a completed pod; current phase is %s", st.Phase)
	case stdin && !c.Stdin && !c.TTY:
		return report.New(report.Failure, "attach without -i, or give the container stdin: true in the manifest", "container %s accepts no input: stdin is false", c.Name)
	}
	return nil
}

// terminalFor returns the user's terminal, if the container has one to connect it to.
func terminalFor(env *cmdutil.Env, c *pod.Container, stdin bool) *os.File {
	terminal, ok := tty.File(env.In)
	if !ok || !c.TTY || !stdin {
		return nil
	}
	return terminal
}
