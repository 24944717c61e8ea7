package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/manifest"
)

// pullWishes are what the command that asked for a pod says beside the manifest.
type pullWishes struct {
	TLSVerify     *bool  `json:"tlsVerify,omitempty"`
	AuthFile      string `json:"authFile,omitempty"`
	Pull          string `json:"pull,omitempty"` // --pull's policy
	RequireLimits bool   `json:"requireLimits,omitempty"`
}

// pullerStage pulls the images of one pod, and starts it: `podrun up -d` and `podrun apply` need
// not live until then. It has the pod's lock.
func pullerStage(args []string) int {
	f := &front{getenv: os.Getenv, in: strings.NewReader(""), out: io.Discard, err: os.Stderr, rooms: house{}, signals: remote.Signals, pullBackOff: pullBackOff, stillAfter: stillAfter}
	if err := f.pullOne(args); err != nil {
		report.Print(f.err, err)
		return exitFailure
	}
	return exitOK
}

func (f *front) pullOne(args []string) error {
	if len(args) != 5 {
		return report.New(report.Internal, "", "a puller takes five arguments")
	}
	lock := os.NewFile(reexec.PullerLock, "lock")
	if _, err := unix.FcntlInt(reexec.PullerLock, unix.F_GETFD, 0); err != nil {
		return report.New(report.Internal, "podrun up starts pullers", "a puller needs its lock: %w", err)
	}
	unix.CloseOnExec(reexec.PullerLock) // StartPod hands it to the pod
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	p := dirs.Pod(args[2], args[3])
	if pid, begun, err := reexec.BeginPuller(dirs, p, args[4], lock); begun || err != nil {
		if err == nil {
			scope(systemd.Scope{Name: "podrun-pull-" + p.Namespace + "-" + p.Name, Description: "podrun: pull for pod " + p.Namespace + "/" + p.Name, PID: pid, Stop: stopMargin})
		}
		return err
	}
	var wishes pullWishes
	if err := json.Unmarshal([]byte(args[4]), &wishes); err != nil {
		return fmt.Errorf("read how to pull: %w", err)
	}
	return f.pullPod(context.Background(), dirs, p, wishes, lock)
}

// pullPod waits for the images of a pod that is on record, and starts it.
func (f *front) pullPod(ctx context.Context, dirs store.Dirs, p store.Pod, wishes pullWishes, lock *os.File) error {
	defer lock.Close()
	l, err := f.recorded(dirs, p, wishes, lock)
	if err != nil {
		return err
	}
	defer l.release()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	up := l.pods[0]
	if up.waiting, err = f.newPending(p, up.plan, stop); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		err := l.tryPod(ctx, up)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return l.endPull(up)
		}
		if asked, _ := up.waiting.pause(ctx, 0); asked { // since this attempt began
			attempt = -1
			continue
		}
		wait := f.pullBackOff(attempt)
		if image.Reason(err) == image.ErrImageNeverPull {
			wait = f.pullBackOff(0) // no registry is asked
		}
		l.failed(up, err, wait)
		if l.rest(ctx, wait, up) {
			attempt = -1
		}
	}
}

// endPull ends the wait of a pod that was stopped before it started. One that the client removes
// next is removed at once, in case the client is killed.
func (l *launch) endPull(p *upPod) (err error) {
	defer p.waiting.close()
	how := p.waiting.stopped()
	if how == nil {
		return nil
	}
	p.waiting.leave(how)
	if how.Remove && !how.Shutdown {
		err = l.keeper.remove(p.place)
	}
	return err
}

// recorded is the launch of a pod that is on record.
func (f *front) recorded(dirs store.Dirs, p store.Pod, wishes pullWishes, lock *os.File) (*launch, error) {
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return nil, err
	}
	text, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	old, err := manifest.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	object, err := manifest.LoadRecorded(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	up := &upPod{object: object, place: p, plan: plan, pull: wishes.Pull, lock: lock, past: &past{plan.UID, old.CreationTimestamp.Time}}
	l := &launch{front: f, dirs: dirs, keeper: keeper, requireLimits: wishes.RequireLimits, said: f.err, pods: []*upPod{up}}
	l.pull = image.PullOptions{TLSVerify: wishes.TLSVerify, AuthFile: wishes.AuthFile}
	return l, l.fix(up)
}
