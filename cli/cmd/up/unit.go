package up

import (
	"encoding/json"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/cli/unit"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/pod"
)

// upInUnit is `podrun up` in a systemd unit: it waits for a start slot, starts the pods, and lives as
// long as they do.
func upInUnit(env *cmdutil.Env, c *cli.Context, files []string, n *systemd.Notifier, signals <-chan os.Signal) error {
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	s := unit.NewService(env, dirs, nil, n)
	s.Quiet = c.Bool("quiet")
	s.Notify(systemd.MainPID(os.Getpid()), systemd.Status("waiting for its turn to start"))
	stop := s.ExtendTimeout(c.Context)
	defer stop()
	defer s.ReleaseStartSlot()
	err = cmdutil.Interruptible(c.Context, signals, s.AcquireStartSlot)
	if e := exitcode.As(err); e != nil && e.Err == nil {
		return nil // a requested stop is no failure
	}
	if err != nil {
		return err
	}
	l, rule, err := newRun(env, c, files)
	if err != nil {
		return err
	}
	defer l.Release()
	defer func() {
		if s.Relay != nil {
			s.Relay.Finish()
		}
	}()
	s.Launcher, s.Rule, s.Pods, l.Unit = l.Launcher, rule, l.Targets, s
	s.Notify(systemd.Status("starting"))
	started := func() {
		stop()
		s.ReleaseStartSlot()
	}
	if len(l.Workloads) > 0 {
		return s.StartControllers(c.Context, l, signals, started)
	}
	return s.StartAndWait(c.Context, l, signals, started)
}

// resumeUnit continues after the waiting loop in C. It does not read the files of the command line, which
// may have changed.
func resumeUnit(env *cmdutil.Env, c *cli.Context) error {
	why := env.Getenv(reexec.WokenEnv)
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	s := unit.NewService(env, dirs, launcher, systemd.NewNotifier(env.Getenv))
	s.Rule, s.Quiet, s.Ready = rollout.ExitCodeFrom(c.String("exit-code-from")), c.Bool("quiet"), true
	var state unit.State
	if err := json.Unmarshal([]byte(env.Getenv(unit.StateEnv)), &state); err != nil {
		return report.New(report.Internal, "", "cannot go on with the pods: read %s: %w", unit.StateEnv, err)
	}
	for _, name := range []string{unit.StateEnv, reexec.WokenEnv} {
		os.Unsetenv(name)
	}
	if len(state.Workloads) > 0 {
		return s.ResumeWorkloads(c.Context, state, why, signals)
	}
	if state.Output >= 0 {
		if s.Relay, err = unit.ReopenOutputPipe(env.Out, state.Output); err != nil {
			return err
		}
		defer s.Relay.Finish()
	}
	for _, one := range state.Pods {
		p := &podup.Target{Pod: dirs.Pod(one.Namespace, one.Name), Started: true}
		if one.Socket >= 0 {
			unix.CloseOnExec(one.Socket)
			p.NotifyConn, p.NotifyTarget = os.NewFile(uintptr(one.Socket), "our end"), &podinit.NotifyTarget{}
		}
		if p.Plan, err = p.Pod.Plan(); err != nil { // removed by another podrun
			p.Plan = &pod.Plan{Namespace: one.Namespace, Name: one.Name}
		}
		s.Pods = append(s.Pods, p)
	}
	if sig, ok := map[string]os.Signal{"term": syscall.SIGTERM, "int": syscall.SIGINT, "hup": syscall.SIGHUP}[why]; ok {
		return s.End(c.Context, sig, signals)
	}
	return s.Resume(c.Context, signals)
}
