package stop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// NewKillCommand returns the command kill.
func NewKillCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "kill",
		Usage:     "send a signal to the containers of pods",
		ArgsUsage: "POD... [-c CONTAINER]",
		Description: `Sends a signal to the first process of every container that runs, or of those
that are named; KILL if no other is asked for. The pod stays: what becomes of a
container that ends is its restart policy's business. podrun stop and podrun
down end pods.

A container's first process that does not handle a signal ignores it, but for
KILL and STOP: so the kernel has it of every first process.

Examples:
  podrun kill web
  podrun kill -s HUP web -c server
  podrun kill --signal USR1 deployment/web
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "signal", Aliases: []string{"s"}, Value: "KILL", Usage: "this `SIGNAL`, by its name or number"},
			&cli.StringSliceFlag{Name: "container", Aliases: []string{"c"}, Usage: "only to this `CONTAINER`"},
		},
		Action: func(c *cli.Context) error { return runKill(env, c) },
	}
}

func runKill(env *cmdutil.Env, c *cli.Context) error {
	only := c.StringSlice("container")
	switch {
	case !c.Args().Present():
		return cmdutil.UsageErrorf("kill", "kill takes the names of pods")
	case len(only) > 0 && c.NArg() > 1:
		return cmdutil.UsageErrorf("kill", "--container goes with one pod")
	}
	number, name, err := signalOf(c.String("signal"))
	if err != nil {
		return err
	}
	return forEachPod(env, c, "signal", func(ctx context.Context, p store.Pod) (string, error) {
		for _, container := range only {
			if err := checkContainer(p, container); err != nil {
				return "", err
			}
		}
		req := wire.Request{Verb: wire.Kill, Kill: &wire.KillRequest{Containers: only, Signal: number}}
		return "sent " + name, requestPod(ctx, p, req)
	})
}

// checkContainer returns an error with the names of a pod's containers if it does not have the given one.
func checkContainer(p store.Pod, container string) error {
	plan, err := p.Plan()
	if err == nil {
		_, err = podclient.Named(plan, container)
	}
	return err
}

// signalOf parses a signal as kill and podman do: HUP, sighup or 1.
func signalOf(word string) (number int, name string, err error) {
	name = "SIG" + strings.TrimPrefix(strings.ToUpper(word), "SIG")
	if number = int(unix.SignalNum(name)); number != 0 {
		return number, name, nil
	}
	if number, err = strconv.Atoi(word); err != nil || number < 1 || number > 64 {
		return 0, "", cmdutil.UsageErrorf("kill", "--signal cannot be %q: it takes a signal's name, such as HUP, or its number, 1 to 64", word)
	}
	if name = unix.SignalName(unix.Signal(number)); name == "" {
		name = "signal " + word
	}
	return number, name, nil
}

// forEachPod calls do for every pod that words name, and prints the result of each.
func forEachPod(env *cmdutil.Env, c *cli.Context, verb string, do func(context.Context, store.Pod) (said string, err error)) error {
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	words, err := resource.PodNames(env, dirs, c.String("namespace"), c.Args().Slice(), false)
	if err != nil {
		return err
	}
	var places []store.Pod
	var errs []error
	for _, word := range words {
		p, err := resource.ExistingPod(dirs, c.String("namespace"), word)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		places = append(places, p)
	}
	places = resource.UniquePods(places)
	said, failed := make([]string, len(places)), make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() { said[i], failed[i] = do(c.Context, p) })
	}
	all.Wait()
	for i, p := range places {
		switch {
		case failed[i] == nil:
			fmt.Fprintf(env.Out, "pod/%s %s\n", p.Name, said[i])
		case errors.Is(failed[i], podclient.ErrNotRunning):
			errs = append(errs, report.New(report.Failure, "podrun start "+p.Name+" runs it anew", "cannot %s pod %s: it is not running", verb, p.Name))
		default:
			errs = append(errs, requestFailed(verb, p, failed[i]))
		}
	}
	return errors.Join(errs...)
}

// requestFailed adds the operation to a supervisor's error.
func requestFailed(verb string, p store.Pod, err error) error {
	var said *refusedRequest
	if !errors.As(err, &said) {
		return fmt.Errorf("%s pod %s: %w", verb, p.Name, err)
	}
	return &exitcode.Error{Code: said.answer.Code, Err: report.New(report.Failure, said.answer.Hint, "cannot %s pod %s: %s", verb, p.Name, said.answer.Message)}
}

// refusedRequest is a supervisor's refusal.
type refusedRequest struct{ answer *wire.Error }

func (r *refusedRequest) Error() string { return r.answer.Message }

// requestPod sends a request to a pod's supervisor, or the next one, and waits for the answer.
func requestPod(ctx context.Context, p store.Pod, req wire.Request) error {
	return podclient.Retry(ctx, p, func() error {
		refusal, err := podclient.Request(ctx, p, req)
		if err == nil && refusal != nil {
			return &refusedRequest{refusal}
		}
		return err
	})
}
