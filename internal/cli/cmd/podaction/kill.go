package podaction

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
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
		Description: `Sends a signal (default: KILL) to the first process of every running container,
or of the named one. The pod stays: its restart policy decides what happens to a
container that ends. podrun stop and podrun down end pods.

If a container's first process is PID 1 of its PID namespace, the kernel ignores
signals that it does not handle, except KILL and STOP.

Examples:
  podrun kill web
  podrun kill -s HUP web -c server
  podrun kill --signal USR1 deployment/web
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "signal", Aliases: []string{"s"}, Value: "KILL", Usage: "send this `SIGNAL`, a name or a number"},
			&cli.StringSliceFlag{Name: "container", Aliases: []string{"c"}, Usage: "only to this `CONTAINER`"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &killOptions{podOptions: podOptions{env: env}} }),
	}
}

type killOptions struct {
	podOptions
	only   []string // containers; nil: all
	signal string
	number int    // of the signal
	name   string // of the signal
}

func (o *killOptions) Complete(c *cli.Context) error {
	o.only, o.signal = c.StringSlice("container"), c.String("signal")
	return o.podOptions.Complete(c)
}

func (o *killOptions) Validate() (err error) {
	switch {
	case len(o.words) == 0:
		return cmdutil.UsageErrorf("kill", "kill requires the names of pods")
	case len(o.only) > 0 && len(o.words) > 1:
		return cmdutil.UsageErrorf("kill", "--container requires exactly one pod")
	}
	o.number, o.name, err = signalOf(o.signal)
	return err
}

func (o *killOptions) Run(ctx context.Context) error {
	return o.forEachPod("signal", func(p store.Pod) (string, error) {
		for _, container := range o.only {
			if err := checkContainer(p, container); err != nil {
				return "", err
			}
		}
		req := wire.Request{Verb: wire.Kill, Kill: &wire.KillRequest{Containers: o.only, Signal: o.number}}
		return "sent " + o.name, podclient.Request(ctx, p, req)
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
		return 0, "", cmdutil.UsageErrorf("kill", "--signal cannot be %q: use a signal's name, such as HUP, or its number, 1 to 64", word)
	}
	if name = unix.SignalName(unix.Signal(number)); name == "" {
		name = "signal " + word
	}
	return number, name, nil
}

// existingPods returns the pods that the words name, and an error about the others.
func (o *podOptions) existingPods() ([]store.Pod, error) {
	words, err := resource.PodNames(o.env, o.dirs, o.namespace, o.words, false)
	var pods []store.Pod
	errs := []error{err}
	for _, word := range words {
		p, err := resource.ExistingPod(o.dirs, o.namespace, word)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pods = append(pods, p)
	}
	return resource.UniquePods(pods), errors.Join(errs...)
}

// forEachPod calls do for every pod that the words name, and prints the result of each.
func (o *podOptions) forEachPod(verb string, do func(store.Pod) (result string, err error)) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	pods, err := o.existingPods()
	results, failed := make([]string, len(pods)), make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { results[i], failed[i] = do(p) })
	}
	all.Wait()
	errs := []error{err}
	for i, p := range pods {
		switch {
		case failed[i] == nil:
			fmt.Fprintf(o.env.Out, "pod/%s %s\n", p.Name, results[i])
		case errors.Is(failed[i], podclient.ErrNotRunning):
			errs = append(errs, report.New(report.Failure, "podrun start "+p.Name+" runs it again", "cannot %s pod %s: it is not running", verb, p.Name))
		default:
			errs = append(errs, fmt.Errorf("cannot %s pod %s: %w", verb, p.Name, failed[i]))
		}
	}
	return errors.Join(errs...)
}
