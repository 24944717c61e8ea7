package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// arrival is how far a pod has to come for `up -d` to leave it.
type arrival struct {
	word string // running, ready
	at   func(*pod.Status) bool
}

// arrivalOf is until it runs, or, with --wait, until it is ready.
func arrivalOf(wait bool) arrival {
	if wait {
		return arrival{"ready", (*pod.Status).Ready}
	}
	return arrival{"running", up}
}

// await waits for `up -d` until the pod has come so far or has succeeded, and says so.
func (f *front) await(ctx context.Context, p *upPod, to arrival, timeout time.Duration) error {
	tell := narrator{out: f.err, pod: p.place.Name}
	if p.awaits {
		if err := f.awaitImages(ctx, p, false); err != nil {
			if asExit(err) == nil && !errors.Is(err, context.Canceled) {
				fmt.Fprintf(f.err, "podrun: pod %[1]s goes on waiting for its images; podrun down %[1]s removes it\n", p.place.Name)
			}
			return err
		}
	}
	defer tell.mounts(p)()
	see, end := tell.still(p, to, f.stillAfter, timeout > 0)
	var last *pod.Status
	err := watch(ctx, p.place, func(st *pod.Status) bool {
		tell.status(st)
		see(st)
		last = st
		return to.at(st) && p.follows(st) || st.Phase.Terminal()
	})
	end()
	if last == nil || !(to.at(last) && p.follows(last)) && !last.Phase.Terminal() {
		err = errors.Join(err, ctx.Err())
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return report.New(report.Failure, fmt.Sprintf("podrun events %[1]s and podrun logs %[1]s show why; podrun down %[1]s removes it", p.place.Name),
			"pod %s is not %s after %v: it is left as it is", p.place.Name, to.word, timeout)
	case err != nil && !errors.Is(err, remote.ErrNotRunning):
		return err
	}
	if last == nil || !to.at(last) { // it has ended, perhaps before we could ask
		if last, err = final(ctx, p.place); err != nil {
			return err
		}
		tell.status(last)
	}
	switch {
	case last.Phase == pod.Succeeded:
		fmt.Fprintf(f.out, "pod/%s succeeded\n", p.place.Name)
	case last.Phase == pod.Failed:
		return withLastLines(p.place, last, tell.failure(p.place, last))
	case p.change != nil:
		fmt.Fprintf(f.out, "pod/%s configured\n", p.place.Name)
	case p.running && !p.pulled:
		fmt.Fprintf(f.out, "pod/%s unchanged\n", p.place.Name)
	default:
		fmt.Fprintf(f.out, "pod/%s %s\n", p.place.Name, to.word)
	}
	return nil
}

// up says whether every app container has been started.
func up(st *pod.Status) bool {
	if st.Phase != pod.Running {
		return false
	}
	for _, c := range st.Containers {
		if c.State.Running == nil && !ran(c.State.Terminated) && !ran(c.LastState.Terminated) {
			return false
		}
	}
	return true
}

// ran says whether a container that has ended was ever running.
func ran(t *pod.Terminated) bool { return t != nil && !t.StartedAt.IsZero() }

// final is the status of a pod that has ended.
func final(ctx context.Context, p store.Pod) (*pod.Status, error) {
	if err := remote.WaitGone(ctx, p); err != nil {
		return nil, err
	}
	return reading.StatusOf(p)
}

// withLastLines adds to a pod's failure what the container to blame wrote last.
func withLastLines(p store.Pod, st *pod.Status, err error) error {
	c := culprit(st)
	if c == nil {
		return err
	}
	all, lerr := crilog.Attempts(p.LogDir(c.Name))
	if lerr != nil || len(all) == 0 {
		return err
	}
	var text bytes.Buffer
	sink := &lines{out: &text}
	if crilog.Read(p.LogDir(c.Name), all[len(all)-1], crilog.Selection{Tail: contextLines}, sink) != nil || text.Len() == 0 {
		return err
	}
	return report.New(report.ClassOf(err), report.Hint(err), "%w\nits last lines:\n%s", err, text.Bytes())
}

// lines is a Sink that keeps text.
type lines struct{ out *bytes.Buffer }

func (l *lines) Entry(e crilog.Entry) error {
	l.out.Write(e.Text)
	if !e.Partial {
		l.out.WriteByte('\n')
	}
	return nil
}

func (l *lines) Flush() error { return nil }
