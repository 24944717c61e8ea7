package cli

import (
	"errors"
	"runtime/debug"
	"sync"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/store"
)

// foresight is what a command that will start a pod, if nothing speaks against it, finds out
// and begins while it reads the manifests, for it depends on the machine and the user alone:
// what the host can do, and a pod's first process. What there is to refuse is said in its turn.
type foresight struct {
	findings chan []host.Finding
	heard    bool // later the machine may be another
	garbage  int  // debug.SetGCPercent before

	mu    sync.Mutex
	over  bool // nothing is begun any more
	ahead *podinit.Prespawn
}

// hurry is debug.SetGCPercent while a pod is started, which leaves little garbage: to look for it
// takes a fifth of the command's processor time.
const hurry = 400

// foresee begins it; able has its findings. It has to be ended.
func (f *front) foresee() *foresight {
	setup := f.setup()
	if setup.DirsErr != nil { // which able says
		return nil
	}
	s := &foresight{findings: make(chan []host.Finding, 1), garbage: debug.SetGCPercent(hurry)}
	dirs := store.Dirs{Data: setup.Data, Runtime: setup.Runtime}
	setup.AfterCgroupProbe = func() { s.begin(func() *podinit.Prespawn { return f.rooms.ahead(dirs) }) }
	go func() { s.findings <- f.rooms.check(setup) }()
	f.foresight = s
	return s
}

// stay is for a command that does not end when the pod runs: its memory counts.
func (s *foresight) stay() {
	if s != nil {
		debug.SetGCPercent(s.garbage)
	}
}

func (s *foresight) begin(ahead func() *podinit.Prespawn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.ahead = ahead()
	}
}

// end ends a process that no pod has taken, before which cgroups would show a stranger.
func (s *foresight) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.ahead.Stop()
	s.ahead = nil
}

// process is the pod's first process, or nil.
func (s *foresight) process() *podinit.Prespawn {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

// check is what the host can do.
func (f *front) check(setup host.Setup) []host.Finding {
	if s := f.foresight; s != nil && !s.heard {
		s.heard = true
		return <-s.findings
	}
	return f.rooms.check(setup)
}

// ahead begins a pod's first process where podrun has been before, in directories that
// nobody else could have put something into.
func (house) ahead(dirs store.Dirs) *podinit.Prespawn {
	program, ok := programs.FindSupervisor(dirs)
	if !ok || errors.Join(store.Trusted(dirs.Data), store.Trusted(dirs.Runtime)) != nil {
		return nil
	}
	return podinit.StartPrespawn(program, dirs)
}

// hugePages says why a pod cannot have huge pages, which depends on what lives in this cgroup.
func (f *front) hugePages(need map[string]int64) error {
	f.foresight.end()
	return f.rooms.hugePages(need)
}
