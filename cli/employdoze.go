package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
)

// doze becomes the loop in C. It returns nil if it must not yet.
func (e *employer) doze(ctx context.Context, wakes []int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ready || e.ending {
		return nil
	}
	state := served{Output: -1}
	for i, w := range e.own {
		state.Workloads = append(state.Workloads, servedWorkload{w.Kind, w.Namespace, w.Name, int(e.locks[i].Fd())})
		if err := stayOpen(int(e.locks[i].Fd())); err != nil {
			return err
		}
	}
	sockets, err := e.listeners(ctx, &state)
	if err != nil {
		return err
	}
	if err := e.record(); err != nil {
		return err
	}
	if e.relay != nil {
		if state.Output, err = e.relay.handOver(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(state)
	if err == nil {
		err = reexec.UnitWait{Output: state.Output, Sockets: sockets, Wakes: wakes}.Exec(append(os.Environ(), servedEnv+"="+string(text)))
	}
	return fmt.Errorf("wait for the pods: %w", err)
}

// listeners are the sockets of the pods that live, whose supervisors are asked to speak
// to us if they do not.
func (e *employer) listeners(ctx context.Context, state *served) (sockets []int, err error) {
	e.pods = nil
	for _, w := range e.own {
		v, err := viewOf(e.dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, j := range append(v.jobs, v) {
			for _, place := range j.places {
				if !place.Alive() {
					continue
				}
				if p := e.listen(ctx, place); p != nil {
					e.pods = append(e.pods, p)
					sockets = append(sockets, int(p.socket.Fd()))
					state.Pods = append(state.Pods, servedPod{place.Namespace, place.Name, int(p.socket.Fd())})
				}
			}
		}
	}
	return sockets, nil
}

func (e *employer) listen(ctx context.Context, place store.Pod) *upPod {
	p := e.sockets[place]
	if p != nil && p.socket != nil && !hungUpOn(p.socket) {
		return p
	}
	p = &upPod{place: place, running: true}
	if err := e.attach(ctx, p); err != nil {
		report.Print(e.front.err, err)
		return nil
	}
	if p.socket == nil {
		return nil // it has ended
	}
	e.sockets[place] = p
	return p
}

// wokenWorkloads goes on where doze has stopped.
func (s *service) wokenWorkloads(ctx context.Context, state served, why string, signals <-chan os.Signal) (err error) {
	e := &employer{service: s, sockets: map[store.Pod]*upPod{}}
	if state.Output >= 0 {
		if s.relay, err = oldRelay(s.front.out, state.Output); err != nil {
			return err
		}
		defer s.relay.finish()
	}
	for _, one := range state.Workloads {
		w, err := s.dirs.Workload(one.Kind, one.Namespace, one.Name)
		if err != nil {
			return err
		}
		unix.CloseOnExec(one.Lock)
		e.own, e.locks = append(e.own, w), append(e.locks, os.NewFile(uintptr(one.Lock), "lock"))
	}
	for _, one := range state.Pods {
		unix.CloseOnExec(one.Socket)
		p := &upPod{place: s.dirs.Pod(one.Namespace, one.Name), running: true, started: true}
		p.socket, p.front = os.NewFile(uintptr(one.Socket), "our end"), &podinit.NotifyTarget{}
		e.sockets[p.place] = p
	}
	if why == "gone" {
		return e.run(ctx, signals, func() {})
	}
	told := make(chan os.Signal, 2)
	told <- unix.SIGTERM
	go func() {
		for sig := range signals {
			told <- sig
		}
	}()
	return e.run(ctx, told, func() {})
}

// podObjects are the manifests of the launch's pods.
func (l *launch) podObjects() (list []manifest.Object) {
	for _, p := range l.pods {
		list = append(list, *p.object)
	}
	return list
}
