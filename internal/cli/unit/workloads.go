package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// stateWorkload is a workload in savedState.
type stateWorkload struct {
	Kind            pod.ObjectKind
	Namespace, Name string
	Lock            int
}

// controllerProcess is the main process of a unit whose pods belong to workloads: it is their controller.
type controllerProcess struct {
	*MainProcess
	c     *controller.Controller
	own   []store.Workload
	locks []*os.File

	mu      sync.Mutex // held before an exec, and before the end
	ending  bool
	sockets map[store.Pod]*podup.Target // pods that send us their state
}

// newControllerProcess returns the controllerProcess of a main process, with the connections of its pods.
func newControllerProcess(s *MainProcess) *controllerProcess {
	e := &controllerProcess{MainProcess: s, sockets: map[store.Pod]*podup.Target{}}
	for _, p := range s.Pods {
		e.sockets[p.Pod] = p
	}
	return e
}

// runControllers runs the controllers of the run's workloads, until no workload needs one.
func (s *MainProcess) runControllers(ctx context.Context) error {
	e := newControllerProcess(s)
	if err := e.lockWorkloads(s.run.WorkloadRefs()); err != nil {
		return err
	}
	return e.run(ctx)
}

// lockWorkloads makes this process the controller, in place of one in the background.
func (e *controllerProcess) lockWorkloads(workloads []store.Workload) error {
	for _, w := range workloads {
		for begun := time.Now(); ; {
			lock, err := w.Lock()
			if err == nil {
				e.own, e.locks = append(e.own, w), append(e.locks, lock.File())
				break
			}
			if !errors.Is(err, store.ErrLocked) || time.Since(begun) > podclient.AnswerTime {
				return fmt.Errorf("cannot take over %s %s: %w", w.Kind, w.Name, err)
			}
			if _, _, pid := w.Controller(); isControllerProcess(pid) {
				_ = unix.Kill(pid, unix.SIGTERM) // an error means that it is gone
			}
			if err := sleep.For(context.Background(), 4*podclient.PollTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// isControllerProcess reports whether a process is a controller that `podrun up -d` has started.
func isControllerProcess(pid int) bool {
	args := procfs.Args(pid)
	return pid > 1 && len(args) > 1 && args[1] == protocol.EntryController
}

// run runs the controllers until the workloads are over or a signal arrives.
func (e *controllerProcess) run(ctx context.Context) (err error) {
	if e.c, err = controller.New(e.env, e.dirs, e.launcher, e.own); err != nil {
		return err
	}
	defer e.c.Close()
	e.c.OnCreate, e.c.OnStarted = e.connectPod, e.podStarted
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !e.ready {
		go e.reportUntilReady(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- e.c.Run(ctx, func(wakes ...int) error { return e.execUnitLoop(ctx, wakes) }) }()
	select {
	case err := <-done:
		if err == nil && e.rule != follow.ExitNone {
			err = follow.JobFailures(e.env, e.dirs, e.own)
		}
		if err == nil && !e.ready {
			e.notify(systemd.Ready)
		}
		e.notify(systemd.Stopping)
		return errors.Join(err, e.ForgetPods())
	case <-e.Signals:
	}
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	return e.finishAll(done)
}

// finishAll makes the controllers remove the workloads. This is a requested stop, not a failure.
func (e *controllerProcess) finishAll(done <-chan error) error {
	e.env.EndInterruptLine()
	e.notify(systemd.Stopping, systemd.Status("stopping"), systemd.ExtendTimeout(e.grace()+podclient.StopMargin+podclient.GoneTime))
	if err := controller.MarkDeleting(e.env, e.dirs, e.own); err != nil {
		return err
	}
	go func() {
		<-e.Signals
		e.c.StopNow()
	}()
	return errors.Join(<-done, e.ForgetPods())
}

// grace returns the longest time that a pod may take to stop.
func (e *controllerProcess) grace() time.Duration {
	var most int64
	for _, w := range e.own {
		v, err := resource.LoadWorkload(e.dirs, w)
		if err != nil {
			continue
		}
		for _, p := range v.StoredPods {
			if plan, err := p.Plan(); err == nil {
				most = max(most, plan.GraceSeconds)
			}
		}
	}
	return time.Duration(most) * time.Second
}

// connectPod makes the connection for a pod, before the pod is created.
func (e *controllerProcess) connectPod(p *podup.Target) error {
	if err := e.MainProcess.connect(p); err != nil {
		return err
	}
	p.NotifyTarget.Label = p.Pod.Name + "/"
	return nil
}

// podStarted keeps the connection of a pod that was created.
func (e *controllerProcess) podStarted(p *podup.Target) {
	p.NotifyTarget.Socket.Close() // the supervisor has it; a copy here would hide its end
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sockets[p.Pod] = p
}

// reportUntilReady reports the workloads' state to systemd until they are ready.
func (e *controllerProcess) reportUntilReady(ctx context.Context) {
	lastStatus, begun := "", false
	for sleep.For(ctx, 10*podclient.PollTime) == nil {
		var words []string
		running, ready := 0, 0
		for _, w := range e.own {
			v, err := resource.LoadWorkload(e.dirs, w)
			if err != nil {
				running, ready = running+1, ready+1 // the workload is over and its record is gone
				continue
			}
			now := v.Current()
			words = append(words, fmt.Sprintf("%s: %d/%d", w.Name, now.Counts.Ready, max(v.Spec.Replicas, now.Counts.Replicas)))
			word, err := follow.Reached(v, false)
			if word != "" || err != nil && exitcode.As(err) != nil {
				running++
			}
			if word, err := follow.Reached(v, v.Spec.Kind != pod.KindJob); word != "" || err != nil && exitcode.As(err) != nil {
				ready++
			}
		}
		if text := strings.Join(words, "; "); text != lastStatus {
			lastStatus = text
			e.notify(systemd.Status(text))
		}
		if !begun && running == len(e.own) {
			begun = true
			e.started()
			e.notify(systemd.ExtendTimeout(readyTime))
		}
		if ready == len(e.own) {
			e.mu.Lock()
			e.ready = true
			e.mu.Unlock()
			e.notify(systemd.Ready, systemd.MainPID(os.Getpid()))
			return
		}
	}
}
