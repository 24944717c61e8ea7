package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
)

// replacePod has a process of its own stop and remove the pod that runs, and make this one in
// its place: it finishes that, should this command be killed. What it is to do is on record
// before it begins.
func (l *launch) replacePod(p *upPod) error {
	text, err := manifest.Marshal(p.object.Pod)
	if err != nil {
		return err
	}
	lock, err := l.dirs.LockReplacement(p.place)
	if err != nil {
		return err
	}
	defer lock.Close() // the other process has it
	// Before the record is there, so that no other command finishes the replacement. Where another
	// process replaces the pod, the new record makes it give up.
	if _, err := lock.TryExclusive(); err != nil {
		return err
	}
	r := &store.Replacement{ID: newUID(), Manifest: text, Images: p.images, RequireLimits: l.requireLimits}
	if err := l.dirs.WriteReplacement(p.place, r); err != nil {
		return err
	}
	p.closePorts() // the other process opens them
	err = l.front.rooms.beside(l.dirs, p.place, lock, l.front.err, func() error { return l.front.replaceRecorded(context.Background(), l.dirs, p.place, lock) })
	if err != nil {
		return errors.Join(err, l.dirs.RemoveReplacement(p.place)) // the user has read why
	}
	p.plan, err = p.place.Plan()
	return err
}

// beside runs the replacer, and returns when it has ended. What it writes goes to said.
func (house) beside(dirs store.Dirs, p store.Pod, lock *store.FileLock, said io.Writer, _ func() error) error {
	err := reexec.ReplacerCommand(dirs, p, lock, said).Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return &exitError{code: exit.ExitCode()} // it has written why
	}
	if err != nil {
		return fmt.Errorf("replace pod %s: %w", p.Name, err)
	}
	return nil
}

// replacerStage is the process that replaces a pod.
func replacerStage(args []string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT) // nobody may be there to read
	f := &front{getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr, rooms: house{}, signals: remote.Signals, pullBackOff: pullBackOff, stillAfter: stillAfter}
	if len(args) != 4 {
		report.Print(f.err, report.New(report.Internal, "", "a replacer takes four arguments"))
		return exitInternal
	}
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	lock, err := store.InheritedFileLock(reexec.ReplacerLock)
	if err == nil {
		err = f.replaceRecorded(context.Background(), dirs, dirs.Pod(args[2], args[3]), lock)
	}
	if left := unsaid(err); left != nil {
		report.Print(f.err, left)
	}
	if err != nil {
		return exitCode(err)
	}
	return exitOK
}

// errWithdrawn says that a pod is no longer to be made.
var errWithdrawn = errors.New("it was removed by another podrun meanwhile")

// replaceRecorded carries out the record of a pod's replacement, once it has the lock. It does
// nothing if there is no record.
func (f *front) replaceRecorded(ctx context.Context, dirs store.Dirs, p store.Pod, lock *store.FileLock) error {
	if err := lock.Exclusive(); err != nil {
		return err
	}
	r, err := dirs.Replacement(p)
	if err != nil || r == nil {
		return err
	}
	err = f.replaceBy(ctx, dirs, p, r)
	return errors.Join(err, dirs.EndReplacement(p, r, err))
}

func (f *front) replaceBy(ctx context.Context, dirs store.Dirs, p store.Pod, r *store.Replacement) error {
	objects, err := manifest.Load("pod "+p.Name, r.Manifest)
	if err != nil {
		return err
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	l := &launch{front: f, dirs: dirs, keeper: keeper, requireLimits: r.RequireLimits, said: f.err}
	l.pods = []*upPod{{object: &objects[0], place: p, anew: true, fixed: r.Images, replacement: r.ID}}
	defer l.release()
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.start()
}

// withdrawn says whether a pod that was to replace another is not to be made any more.
func (l *launch) withdrawn(p *upPod) error {
	if p.replacement == "" {
		return nil
	}
	r, err := l.dirs.Replacement(p.place)
	if err == nil && (r == nil || r.ID != p.replacement) {
		err = fmt.Errorf("cannot replace pod %s: %w", p.place.Name, errWithdrawn)
	}
	return err
}

// finish finishes what commands that were killed have begun, where the pods' own processes were
// killed, too: it removes pods that are to be gone, and has those made that replace others.
func (f *front) finish(dirs store.Dirs) {
	places, err := dirs.Pods()
	if err != nil {
		return // the command reports it
	}
	for _, p := range places {
		if !p.Removing() || p.Alive() {
			continue
		}
		if err := f.removeLeft(dirs, p); err != nil {
			report.Print(f.err, err)
		}
	}
	places, err = dirs.Replacements()
	if err != nil {
		report.Print(f.err, err)
	}
	for _, p := range places {
		if err := f.replaceLeft(dirs, p); err != nil {
			report.Print(f.err, err)
		}
	}
}

func (f *front) removeLeft(dirs store.Dirs, p store.Pod) error {
	lock, err := p.Lock()
	if err != nil {
		return nil // somebody else removes it
	}
	defer lock.Close()
	if !p.Removing() {
		return nil
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	return keeper.remove(p)
}

func (f *front) replaceLeft(dirs store.Dirs, p store.Pod) error {
	lock, err := dirs.LockReplacement(p)
	if err != nil {
		return err
	}
	defer lock.Close()
	if free, err := lock.TryExclusive(); err != nil || !free {
		return err
	}
	r, err := dirs.Replacement(p)
	if err != nil || r == nil {
		return err
	}
	if r.Failed != "" {
		return report.New(report.Failure, "podrun up runs it; podrun down "+p.Name+" forgets it", "pod %s could not replace the one before it: %s", p.Name, r.Failed)
	}
	fmt.Fprintf(f.err, "podrun: finishing the replacement of pod %s: podrun up --replace was interrupted\n", p.Name)
	cmd := reexec.ReplacerCommand(dirs, p, lock, nil)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("replace pod %s: %w", p.Name, err)
	}
	return cmd.Process.Release()
}
