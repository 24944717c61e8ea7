package runner

import (
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// changed looks at an object that is not what it was. Environments are left as they are:
// the next start of a container sees it.
func (e *engine) changed(what wire.ChangedRequest) {
	s := e.currentSandbox()
	if what.Kind == pod.KindService && s != nil && s.slot != 0 {
		if err := s.lead(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	e.refresh()
	e.emit(lifecycle.Event{Kind: lifecycle.ObjectChanged})
}

// refresh brings the files of all volumes up to date with what they are made of. What
// cannot be had leaves a volume as it was, and is told.
func (e *engine) refresh() {
	s := e.currentSandbox()
	if s == nil {
		return
	}
	e.refreshing.Lock()
	defer e.refreshing.Unlock()
	plan := e.latest()
	var bad unmounted
	for i := range plan.Volumes {
		v := &plan.Volumes[i]
		if v.Kind != pod.Files {
			continue
		}
		if _, err := os.Lstat(s.volumePath(v)); err != nil {
			continue // the pod ends
		}
		if err := s.writeFiles(v); err != nil {
			bad.add(v.Name, err)
		}
	}
	if len(bad.lines) > 0 {
		e.emit(lifecycle.Event{Kind: lifecycle.VolumesFailed, Attempt: s.attempt, Message: bad.Error()})
	}
	e.work(1) // no doze until it is swept
	time.AfterFunc(sweepAfter, func() {
		defer e.work(-1)
		e.refreshing.Lock()
		defer e.refreshing.Unlock()
		for i := range plan.Volumes {
			if v := &plan.Volumes[i]; v.Kind == pod.Files {
				_ = volumes.SweepFiles(s.volumePath(v), v.Dirs) // the next one sweeps, too
			}
		}
	})
}

// sweepAfter is how long what was replaced stays: for those who were about to open it.
const sweepAfter = time.Second

// announce tells other pods of this one, if there is something new to tell, and has
// Services lead to it or not. Without a status it is as ready as it was.
func (e *engine) announce(st *pod.Status) {
	e.mu.Lock()
	s, plan := e.sandbox, e.plan
	if s == nil || s.slot == 0 {
		e.mu.Unlock()
		return
	}
	e.busy++
	e.mu.Unlock()
	s.wantPresence(plan, st)
	go func() {
		defer e.work(-1)
		if err := s.tell(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
}
