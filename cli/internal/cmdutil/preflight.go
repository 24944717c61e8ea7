package cmdutil

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Prespawn is what a command that will start a pod, if nothing speaks against it, finds out
// and begins while it reads the manifests, for it depends on the machine and the user alone:
// what the host can do, and a pod's first process. What there is to refuse is said in its turn.
type Prespawn struct {
	findings  chan []host.Finding
	used      bool // later the machine may be another
	gcPercent int  // debug.SetGCPercent before

	mu      sync.Mutex
	Over    bool // nothing is begun any more
	process *podinit.Prespawn
}

// startGCPercent is debug.SetGCPercent while a pod is started, which leaves little garbage: to look for it
// takes a fifth of the command's processor time.
const startGCPercent = 400

// StartPrespawn begins it; able has its findings. It has to be ended.
func (env *Env) StartPrespawn() *Prespawn {
	setup := env.HostSetup()
	if setup.DirsErr != nil { // which able says
		return nil
	}
	s := &Prespawn{findings: make(chan []host.Finding, 1), gcPercent: debug.SetGCPercent(startGCPercent)}
	dirs := store.Dirs{Data: setup.Data, Runtime: setup.Runtime}
	setup.AfterCgroupProbe = func() { s.begin(func() *podinit.Prespawn { return env.Deps.Prespawn(dirs) }) }
	go func() { s.findings <- env.Deps.CheckHost(setup) }()
	env.Prespawn = s
	return s
}

// RestoreGC is for a command that does not end when the pod runs: its memory counts.
func (s *Prespawn) RestoreGC() {
	if s != nil {
		debug.SetGCPercent(s.gcPercent)
	}
}

func (s *Prespawn) begin(ahead func() *podinit.Prespawn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Over {
		s.process = ahead()
	}
}

// End ends a process that no pod has taken, before which cgroups would show a stranger.
func (s *Prespawn) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Over = true
	s.process.Stop()
	s.process = nil
}

// Process is the pod's first process, or nil.
func (s *Prespawn) Process() *podinit.Prespawn {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// hostFindings is what the host can do.
func (env *Env) hostFindings(setup host.Setup) []host.Finding {
	if s := env.Prespawn; s != nil && !s.used {
		s.used = true
		return <-s.findings
	}
	return env.Deps.CheckHost(setup)
}

// CheckHugePages says why a pod cannot have huge pages, which depends on what lives in this cgroup.
func (env *Env) CheckHugePages(need map[string]int64) error {
	env.Prespawn.End()
	return env.Deps.CheckHugePages(need)
}

// Preflight finds podrun's directories, or says why no pod can be run here. Nothing has
// been made until then but these directories.
func (env *Env) Preflight(ctx context.Context, requireLimits bool) (store.Dirs, error) {
	setup := env.HostSetup()
	if setup.DirsErr != nil {
		return store.Dirs{}, setup.DirsErr
	}
	if err := refuse(env.hostFindings(setup), requireLimits); err != nil {
		return store.Dirs{}, err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return store.Dirs{}, err
	}
	return dirs, env.Deps.TryPod(ctx, dirs)
}

// HostSetup is what the probes of the host are told.
func (env *Env) HostSetup() host.Setup {
	s := host.Setup{Built: buildTime(), Trusted: store.Trusted, RuntimeDefault: env.Getenv("XDG_RUNTIME_DIR") == ""}
	s.Program, _ = os.Executable()
	dirs, err := store.FindUserDirs(env.Getenv)
	s.Data, s.Runtime, s.DirsErr = dirs.Data, dirs.Runtime, err
	return s
}

// buildTime is the time of the commit this program was built from; zero if it is not
// stamped.
func buildTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value)
			return t
		}
	}
	return time.Time{}
}

// refuse is why no pod may be run here, or nil.
func refuse(findings []host.Finding, requireLimits bool) error {
	if err := host.FirstFailure(findings); err != nil || !requireLimits {
		return err
	}
	if f, ok := host.FindByName(findings, host.Limits); ok && f.Level != host.OK {
		return report.New(report.Failure, f.Cure, "%s, and --require-limits was given", f.Detail)
	}
	return nil
}
