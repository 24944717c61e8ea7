package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/pod"
)

// servedWorkload is a workload in servedEnv.
type servedWorkload struct {
	Kind            pod.ObjectKind
	Namespace, Name string
	Lock            int
}

// employer is a unit's main process whose pods are made by workloads: it is their
// controller.
type employer struct {
	*service
	c     *controller
	own   []store.Workload
	locks []*os.File

	mu      sync.Mutex // held by who may exec, and by who ends
	ending  bool
	sockets map[store.Pod]*upPod // pods that tell us how they are
}

// employ runs the launch's workloads in a unit, as long as they need somebody.
func (s *service) employ(ctx context.Context, l *launch, signals <-chan os.Signal, started func()) error {
	if len(l.pods) > 0 {
		return oneSort(documents{pods: l.podObjects(), workloads: l.workloads})
	}
	err := interruptible(ctx, signals, l.prepare)
	if e := asExit(err); e != nil && e.err == nil {
		return nil // told to end
	}
	if err == nil {
		err = l.start()
	}
	if err != nil {
		return err
	}
	e := &employer{service: s, sockets: map[store.Pod]*upPod{}}
	if err := e.takeOver(l.workplaces()); err != nil {
		return err
	}
	return e.run(ctx, signals, started)
}

// takeOver makes this process the controller, instead of one in the background.
func (e *employer) takeOver(places []store.Workload) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	for _, w := range places {
		for begun := time.Now(); ; {
			lock, err := w.Lock(boot)
			if err == nil {
				e.own, e.locks = append(e.own, w), append(e.locks, lock.File())
				break
			}
			if !errors.Is(err, store.ErrLocked) || time.Since(begun) > remote.AnswerTime {
				return fmt.Errorf("cannot take over %s %s: %w", w.Kind, w.Name, err)
			}
			if _, _, pid := w.Controller(); background(pid) {
				_ = unix.Kill(pid, unix.SIGTERM) // it has gone if it fails
			}
			if err := remote.Pause(context.Background(), 4*remote.PollTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// background says whether a process is a controller that `podrun up -d` has left.
func background(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cmdline"))
	return pid > 1 && err == nil && strings.Contains(string(b), "\x00"+reexec.Controller+"\x00")
}

// run looks after the workloads until they are over or a signal comes.
func (e *employer) run(ctx context.Context, signals <-chan os.Signal, started func()) (err error) {
	if e.c, err = e.front.newController(e.dirs, e.keeper, e.own); err != nil {
		return err
	}
	defer e.c.close()
	e.c.connect, e.c.fresh = e.join, e.know
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !e.ready {
		go e.announce(ctx, started)
	}
	done := make(chan error, 1)
	go func() { done <- e.c.run(ctx, func(wakes ...int) error { return e.doze(ctx, wakes) }) }()
	select {
	case err := <-done:
		if err == nil && e.rule != exitNone {
			err = e.front.verdicts(e.dirs, e.own)
		}
		if err == nil && !e.ready {
			e.tell(systemd.Ready)
		}
		e.tell(systemd.Stopping)
		return errors.Join(err, e.forget())
	case <-signals:
	}
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	return e.finishAll(done, signals)
}

// finishAll removes the workloads, which their controller does: it is being told to end,
// which is no failure.
func (e *employer) finishAll(done <-chan error, signals <-chan os.Signal) error {
	e.front.afterCtrlC()
	e.tell(systemd.Stopping, systemd.Status("stopping"), systemd.ExtendTimeout(e.grace()+remote.Slack+remote.GoneTime))
	if err := e.front.discard(e.dirs, e.own); err != nil {
		return err
	}
	go func() {
		<-signals
		e.c.hurry()
	}()
	return errors.Join(<-done, e.forget())
}

// grace is how long the slowest pod may take to end.
func (e *employer) grace() time.Duration {
	var most int64
	for _, w := range e.own {
		v, err := viewOf(e.dirs, w)
		if err != nil {
			continue
		}
		for _, p := range v.places {
			if plan, err := p.Plan(); err == nil {
				most = max(most, plan.GraceSeconds)
			}
		}
	}
	return time.Duration(most) * time.Second
}

// join gives a pod that is to be made its ends.
func (e *employer) join(p *upPod) error {
	if err := e.service.connect(p); err != nil {
		return err
	}
	p.front.Label = p.place.Name + "/"
	return nil
}

// know keeps the ends of a pod that has been made.
func (e *employer) know(p *upPod) {
	p.front.Socket.Close() // the supervisor has it; so its end is seen
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sockets[p.place] = p
}

// announce tells systemd how the workloads are until they are ready.
func (e *employer) announce(ctx context.Context, started func()) {
	said, begun := "", false
	for remote.Pause(ctx, 10*remote.PollTime) == nil {
		var words []string
		running, ready := 0, 0
		for _, w := range e.own {
			v, err := viewOf(e.dirs, w)
			if err != nil {
				running, ready = running+1, ready+1 // it is over, and gone
				continue
			}
			now := v.now()
			words = append(words, fmt.Sprintf("%s: %d/%d", w.Name, now.Counts.Ready, max(v.spec.Replicas, now.Counts.Replicas)))
			word, err := v.arrived(false)
			if word != "" || err != nil && asExit(err) != nil {
				running++
			}
			if word, err := v.arrived(v.spec.Kind != pod.KindJob); word != "" || err != nil && asExit(err) != nil {
				ready++
			}
		}
		if text := strings.Join(words, "; "); text != said {
			said = text
			e.tell(systemd.Status(text))
		}
		if !begun && running == len(e.own) {
			begun = true
			started()
			e.tell(systemd.ExtendTimeout(readyTime))
		}
		if ready == len(e.own) {
			e.mu.Lock()
			e.ready = true
			e.mu.Unlock()
			e.tell(systemd.Ready, systemd.MainPID(os.Getpid()))
			return
		}
	}
}
