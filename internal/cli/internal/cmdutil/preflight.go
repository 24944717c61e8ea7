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

// Preparation is the background work of a command that will start a pod, while it decodes the manifests: it
// probes the host and starts a pod's first process in advance (podinit.First). Both depend only on the
// machine and the user. Errors are reported later, by the preflight checks.
type Preparation struct {
	findings  chan []host.Finding
	used      bool // the findings are used once; later the machine may have changed
	gcPercent int  // the earlier debug.SetGCPercent

	mu      sync.Mutex
	Over    bool // nothing more may be started
	process *podinit.First
}

// StartGCPercent is debug.SetGCPercent during the start of a pod. The start leaves little garbage, and
// collecting it takes a fifth of the command's processor time.
const StartGCPercent = 400

// StartPreparation starts the work in the background, and returns when the process has been started: what follows
// takes less time than that process. Preparation.Preflight uses the findings. The caller must call End.
func (env *Env) StartPreparation() *Preparation {
	setup := env.HostSetup()
	if setup.DirsErr != nil { // the preflight checks report it
		return nil
	}
	p := &Preparation{findings: make(chan []host.Finding, 1), gcPercent: debug.SetGCPercent(StartGCPercent)}
	dirs := store.Dirs{Data: setup.Data, Runtime: setup.Runtime}
	begun := make(chan struct{})
	markBegun := sync.OnceFunc(func() { close(begun) })
	setup.AfterCgroupProbe = func() {
		p.startProcess(func() *podinit.First { return env.Deps.StartFirst(dirs) })
		markBegun()
	}
	setup.UsernsEntered = func() bool { return len(p.Process().Pids()) > 0 }
	go func() {
		p.findings <- env.Deps.CheckHost(setup)
		markBegun() // the CheckHost of tests does not call AfterCgroupProbe
	}()
	<-begun
	return p
}

// RestoreGC restores the garbage collector's setting, for a command that keeps running with the pod: its
// memory matters.
func (p *Preparation) RestoreGC() {
	if p != nil {
		debug.SetGCPercent(p.gcPercent)
	}
}

// startProcess starts the prespawned process, unless End was called.
func (p *Preparation) startProcess(start func() *podinit.First) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Over {
		p.process = start()
	}
}

// End ends a prespawned process that no pod has used. Otherwise checks of the cgroup would find a foreign
// process.
func (p *Preparation) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Over = true
	p.process.Stop()
	p.process = nil
}

// Process returns the prespawned process, or nil.
func (p *Preparation) Process() *podinit.First {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// hostFindings returns the findings of the quick probes.
func (p *Preparation) hostFindings(env *Env, setup host.Setup) []host.Finding {
	if p != nil && !p.used {
		p.used = true
		return <-p.findings
	}
	return env.Deps.CheckHost(setup)
}

// Preflight returns podrun's directories, or why no pod can run here. It creates nothing but these
// directories.
func (env *Env) Preflight(ctx context.Context, requireLimits bool) (store.Dirs, error) {
	return (*Preparation)(nil).Preflight(ctx, env, requireLimits)
}

// Preflight is Env.Preflight with the findings of a command that will start a pod. p may be nil.
func (p *Preparation) Preflight(ctx context.Context, env *Env, requireLimits bool) (store.Dirs, error) {
	setup := env.HostSetup()
	if setup.DirsErr != nil {
		return store.Dirs{}, setup.DirsErr
	}
	if err := refuse(p.hostFindings(env, setup), requireLimits); err != nil {
		return store.Dirs{}, err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return store.Dirs{}, err
	}
	return dirs, env.Deps.TryPod(ctx, dirs)
}

// HostSetup returns the input for the probes of the host.
func (env *Env) HostSetup() host.Setup {
	s := host.Setup{Built: buildTime(), Trusted: store.Trusted, RuntimeDefault: env.Getenv("XDG_RUNTIME_DIR") == ""}
	s.Program, _ = os.Executable()
	dirs, err := store.FindUserDirs(env.Getenv)
	s.Data, s.Runtime, s.DirsErr = dirs.Data, dirs.Runtime, err
	return s
}

// buildTime returns the time of the commit that this program was built from; zero if it is not stamped.
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

// refuse returns why no pod may run here, or nil.
func refuse(findings []host.Finding, requireLimits bool) error {
	if err := host.FirstFailure(findings); err != nil || !requireLimits {
		return err
	}
	if f, ok := host.FindByName(findings, host.Limits); ok && f.Level != host.OK {
		return report.New(report.Failure, f.Hint, "%s, and --require-limits was given", f.Detail)
	}
	return nil
}
