package unit

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// execUnitLoop executes the unit loop. It returns nil if it must not do so yet.
func (e *controllerProcess) execUnitLoop(ctx context.Context, wakes []int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ready || e.ending {
		return nil
	}
	state := savedState{Output: -1}
	for i, w := range e.own {
		state.Workloads = append(state.Workloads, stateWorkload{w.Kind, w.Namespace, w.Name, int(e.locks[i].Fd())})
		if err := controller.KeepOpenOnExec(e.locks[i]); err != nil {
			return err
		}
	}
	sockets, err := e.listeners(ctx, &state)
	if err != nil {
		return err
	}
	if err := e.recordPods(); err != nil {
		return err
	}
	if e.relay != nil {
		if state.Output, err = e.relay.handOver(); err != nil {
			return err
		}
	}
	return execUnitLoop(e.dirs, state, reexec.UnitLoop{Output: state.Output, Sockets: sockets, Wakers: wakes})
}

// listeners returns the sockets of the running pods. It first asks supervisors without a connection to
// connect.
func (e *controllerProcess) listeners(ctx context.Context, state *savedState) (sockets []int, err error) {
	e.Pods = nil
	for _, w := range e.own {
		v, err := resource.LoadWorkload(e.dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, j := range append(v.Jobs, v) {
			for _, place := range j.StoredPods {
				if !place.Alive() {
					continue
				}
				if t := e.listen(ctx, place); t != nil {
					e.Pods = append(e.Pods, t)
					sockets = append(sockets, int(t.NotifyConn.Fd()))
					state.Pods = append(state.Pods, statePod{place.Namespace, place.Name, int(t.NotifyConn.Fd())})
				}
			}
		}
	}
	return sockets, nil
}

func (e *controllerProcess) listen(ctx context.Context, place store.Pod) *podup.Target {
	t := e.sockets[place]
	if t != nil && t.NotifyConn != nil && !isHungUp(t.NotifyConn) {
		return t
	}
	t = &podup.Target{Pod: place, Step: upplan.Step{Action: upplan.Keep}}
	if err := e.attach(ctx, t); err != nil {
		report.Print(e.env.ErrOut, err)
		return nil
	}
	if t.NotifyConn == nil {
		return nil // the pod has ended
	}
	e.sockets[place] = t
	return t
}

// resumeControllers continues a controllerProcess after the unit loop, which execUnitLoop has
// started.
func (s *MainProcess) resumeControllers(ctx context.Context, workloads []stateWorkload, reason string) error {
	e := newControllerProcess(s)
	for _, workload := range workloads {
		w, err := s.dirs.Workload(workload.Kind, workload.Namespace, workload.Name)
		if err != nil {
			return err
		}
		unix.CloseOnExec(workload.Lock)
		e.own, e.locks = append(e.own, w), append(e.locks, os.NewFile(uintptr(workload.Lock), "lock"))
	}
	if reason != protocol.WokenByGone {
		signals, withStop := s.Signals, make(chan os.Signal, 2)
		withStop <- unix.SIGTERM
		go func() {
			for sig := range signals {
				withStop <- sig
			}
		}()
		s.Signals = withStop
	}
	return e.run(ctx)
}
