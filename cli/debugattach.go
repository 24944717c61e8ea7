package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// attach waits until the container runs and attaches to it: all that it writes is shown, from
// its first byte on; of one that has ended already, what is in its log.
func (d *debugging) attach(ctx context.Context, keys []byte) error {
	name := d.container.Name
	last, err := d.until(ctx, func(s pod.State) bool {
		w := s.Waiting
		return s.Running != nil || s.Terminated != nil || w != nil && strings.HasPrefix(w.Reason, "Create")
	})
	switch {
	case err != nil && !errors.Is(err, remote.ErrNotRunning):
		return err
	case last.Terminated != nil:
		return d.ended(ctx, last.Terminated)
	case last.Running == nil:
		why := cmp.Or(last.Waiting, &pod.Waiting{Reason: "the pod ends"})
		return report.New(report.Failure, "podrun describe pod "+d.pod.Name+" shows more", "container %s does not start: %s %s", name, why.Reason, why.Message)
	}
	plan, err := d.pod.Plan()
	if err != nil {
		return err
	}
	ct, err := remote.Named(plan, name)
	if err != nil {
		return err
	}
	err = d.front.attachAt(ctx, d.pod, ct, attachWishes{stdin: d.container.Stdin, tty: d.container.TTY, fromStart: true, keys: keys, quiet: d.quiet})
	var refused *exitError
	if errors.As(err, &refused) && refused.err != nil { // it may have ended in between
		within, cancel := context.WithTimeout(ctx, applyTime)
		defer cancel()
		last, werr := d.until(within, func(s pod.State) bool { return s.Terminated != nil })
		if werr == nil && last.Terminated != nil {
			return d.ended(ctx, last.Terminated)
		}
	}
	return err
}

// until waits for a state of the container, or the pod's end, and gives the last state.
func (d *debugging) until(ctx context.Context, reached func(pod.State) bool) (last pod.State, err error) {
	err = watch(ctx, d.pod, func(st *pod.Status) bool {
		if c, ok := st.Container(d.container.Name); ok {
			last = c.State
		}
		return reached(last) || st.Phase.Terminal()
	})
	return last, err
}

// ended shows what a container that has ended has written, and ends with its code.
func (d *debugging) ended(ctx context.Context, end *pod.Terminated) error {
	err := d.front.again(d.front, []string{"podrun", "logs", "--namespace", d.pod.Namespace, "--container", d.container.Name, d.pod.Name})
	switch {
	case err != 0:
		return &exitError{code: err}
	case end.ExitCode != 0:
		return &exitError{code: end.ExitCode}
	}
	return ctx.Err()
}
