package podset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// errInterrupted is the cause of a way back that the user or a power cut has caused.
var errInterrupted = errors.New("its change was interrupted")

// finish goes back to the current version, because a change to the next one was interrupted.
func (t *Transaction) finish(ctx context.Context) error {
	if err := t.endReplacements(); err != nil {
		return err
	}
	if t.record.State == store.SetReturning {
		return t.back(ctx, t.record.Reason)
	}
	fmt.Fprintf(t.env.ErrOut, "podrun: %s: going back: its last change was interrupted\n", t.title())
	next := t.record.Next
	if t.record.Interrupted.ID != next.ID {
		t.record.Interrupted = store.SetInterrupted{ID: next.ID}
	}
	if t.record.Interrupted.Times++; t.record.Interrupted.Times >= maxInterrupted {
		t.record.Reject(next, t.record.Current, fmt.Sprintf("its change was interrupted %d times", maxInterrupted), time.Now().UTC())
	}
	return t.back(ctx, errInterrupted.Error())
}

// WentBack is the error of a change that has failed: the set is back at its former version.
type WentBack struct {
	Cause error
	Empty bool // it had none: its pods and objects were removed
}

func (e *WentBack) Error() string {
	if e.Empty {
		return e.Cause.Error() + ": its pods and objects were removed"
	}
	return e.Cause.Error() + ": it is back at its former version"
}

// Unwrap returns the cause.
func (e *WentBack) Unwrap() error { return e.Cause }

// endReplacements waits for the processes that still replace pods for a killed command, and drops the replacements that
// nobody carries out: another command would finish them after the set has gone back.
func (t *Transaction) endReplacements() error {
	pods, err := t.dirs.Replacements()
	if err != nil {
		return err
	}
	members := t.record.Members()
	for _, p := range pods {
		if !slices.Contains(members, store.SetMember{Namespace: p.Namespace, Name: p.Name}) {
			continue
		}
		if err := t.endReplacement(p); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transaction) endReplacement(p store.Pod) error {
	lock, err := t.dirs.LockReplacement(p)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil { // the replacer holds it until the new pod runs
		return err
	}
	return t.dirs.RemoveReplacement(p)
}

// goBack goes back to the current version because of cause, and returns an error that has it.
func (t *Transaction) goBack(ctx context.Context, cause error, result store.SetResult) error {
	fmt.Fprintf(t.env.ErrOut, "podrun: %s: going back: %s\n", t.title(), report.Escape(cause.Error()))
	if cause != errInterrupted && result != store.SetRolledBack {
		t.record.Reject(t.record.Next, t.record.Current, cause.Error(), time.Now().UTC())
	}
	if err := t.back(ctx, cause.Error()); err != nil {
		return report.New(report.Failure, "podrun ps, podrun events and podrun logs show why; the next run tries to go back again", "%s: %w; going back failed: %w", t.title(), cause, err)
	}
	return &WentBack{cause, t.record.Current == nil}
}

// back makes the set its current version again. If that is not ready any more, it is the current version nevertheless: the
// next one may be better.
func (t *Transaction) back(ctx context.Context, reason string) error {
	next := t.record.Next
	t.record.State, t.record.Reason = store.SetReturning, reason
	if err := t.dirs.WriteSet(t.Name, t.record); err != nil {
		report.Print(t.env.ErrOut, err) // the disk may be full because of Next; its record says SetTrying, so the next run goes back, too
	}
	current := &version{SetVersion: &store.SetVersion{}}
	if t.record.Current != nil {
		var err error
		if current, err = readVersion(t.dirs, t.Name, t.record.Current); err != nil {
			return err
		}
	}
	change := changeTo(next, store.SetFailed)
	change.Reason = reason
	if !t.runs(current) {
		err := t.returnTo(ctx, current)
		switch notReady := (*notReadyError)(nil); {
		case ctx.Err() == nil && errors.As(err, &notReady):
			fmt.Fprintf(t.env.ErrOut, "podrun: %s: its former version is not ready either: %s\n", t.title(), report.Escape(err.Error()))
			change.Reason += "; the former version is not ready either: " + err.Error()
		case err != nil:
			return err
		}
	}
	if t.record.Current != nil {
		change.Former = t.record.Current.Digest
	}
	// A name that the user has given to an image stays there if the next update is to try it.
	return t.settle(change, reason != errInterrupted.Error() || t.record.Interrupted.Times >= maxInterrupted)
}

// returnTo applies the version to which the set goes back, and waits for it.
func (t *Transaction) returnTo(ctx context.Context, current *version) error {
	run, err := t.prepare(ctx, current)
	if err != nil {
		return err
	}
	defer run.Release()
	return t.carryOut(ctx, run, max(t.Timeout, backTime), 0)
}

// RollBack changes the set to the version before the current one, which is not tried again unless someone asks.
func (t *Transaction) RollBack(ctx context.Context) error {
	if t.record.Next != nil { // the change that was interrupted is what is rolled back
		return t.finish(ctx)
	}
	if t.record.Former == nil || t.record.Current == nil {
		return report.New(report.Failure, "podrun follow history "+t.Name+" shows its changes", "set %s has no former version", t.Name)
	}
	former, err := readVersion(t.dirs, t.Name, t.record.Former)
	if err != nil {
		return err
	}
	return t.explain(t.change(ctx, former, store.SetRolledBack))
}

// Remove removes the set with its pods and objects; claims stay. If it is interrupted, the next run goes on with it.
func (t *Transaction) Remove(ctx context.Context) error {
	if t.record.Current != nil {
		current := *t.record.Current
		current.Members = t.record.Members()
		t.record.State, t.record.Next, t.record.Current, t.record.Reason = store.SetReturning, &current, nil, "it was being removed"
		if err := t.dirs.WriteSet(t.Name, t.record); err != nil {
			return err
		}
	}
	run, err := t.prepare(ctx, &version{SetVersion: &store.SetVersion{}})
	if err != nil {
		return err
	}
	defer run.Release()
	if err := t.apply(ctx, run); err != nil {
		return err
	}
	return t.dirs.RemoveSet(t.Name)
}
