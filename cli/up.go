package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

func (f *front) upCommand() *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "run pods from their manifests",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL | -",
		Description: `Checks the manifests, brings the images onto this machine and runs the pods. In
the foreground it shows what all containers write and ends when the pods have;
Ctrl-C stops them gracefully and removes them, with the services, configmaps and
secrets that were not there before; a second Ctrl-C stops them at once. With -d
it returns when the pods are running or, with --wait, ready.
In a unit of systemd with Type=notify it tells systemd how the pods are; podrun
systemd makes such units.

A pod that runs already follows its manifest: CPU and memory are resized in
place, a container with another image is restarted alone, labels are noted.
Other differences are listed and refused; --replace stops the pod and runs it
anew, even if this command is killed meanwhile. --watch does so whenever a file
has changed.

A pod whose images are missing is Pending. They are pulled in the background,
even after podrun up has ended, and the pod starts when all are there.

Of a Deployment, Job or the like it makes the pods. In the foreground it is
their controller; with -d a small process is, which waits until it is needed.
With --wait a Deployment has to be rolled out and a Job to be complete: if it
fails, the exit code is that of its last container that failed.

Examples:
  podrun up web.yaml
  podrun up -d web.yaml worker.yaml
  podrun up -d --wait --timeout 2m web.yaml
  podrun up --exit-code-from test suite.yaml
  podrun up --watch web.yaml settings.yaml
  generate-pod | podrun up -
`,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "run the pods of this `FILE` (- is standard input)"},
			ofManifests(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the pods are running, and leave them running"},
			&cli.BoolFlag{Name: "wait", Usage: "with -d: return when the pods are ready, not as soon as they run"},
			&cli.DurationFlag{Name: "timeout", Usage: "with -d: give up waiting after this `DURATION` (90s, 5m); the pods are left as they are"},
			&cli.BoolFlag{Name: "fail-fast", Usage: "with -d: return an error after the first failed pull of an image; the pod keeps waiting, and starts when the image has come"},
			&cli.BoolFlag{Name: "watch", Usage: "in the foreground: apply the files again whenever they change"},
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot become what its manifest says, and run it anew"},
			&cli.StringFlag{Name: "network", Usage: "connect pods that do not say themselves by this `MODE`: auto, masquerade, tproxy, netstack, host or none"},
			&cli.BoolFlag{Name: "require-limits", Usage: "refuse to run where CPU and memory limits cannot be enforced"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "in the foreground: do not show what the containers write (podrun logs does)"},
			answerFlag(),
			dryRunFlag(dryRunUsage),
			exitCodeFromFlag(),
			strictFlag(),
			policyFlag(),
			pullFlag(),
			tlsVerifyFlag(),
		}, logLimitFlags()...),
		Action: func(c *cli.Context) error { return f.answered(c, (*front).up) },
	}
}

func tlsVerifyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "tls-verify", Value: true, Usage: "--tls-verify=false lets registries speak plain HTTP or show unknown certificates"}
}

func (f *front) up(c *cli.Context) error {
	files := append(c.StringSlice("filename"), c.Args().Slice()...)
	switch {
	case len(files) == 0:
		return usageErrorf("up", "up takes the files of pods")
	case c.Bool("wait") && !c.Bool("detach"):
		return usageErrorf("up", "--wait is for -d: in the foreground, up ends with the pods")
	case c.IsSet("timeout") && !c.Bool("detach"):
		return usageErrorf("up", "--timeout is for -d: in the foreground, up ends with the pods")
	case c.Bool("fail-fast") && !c.Bool("detach"):
		return usageErrorf("up", "--fail-fast is for -d: in the foreground, up ends with the pods")
	case c.Duration("timeout") < 0:
		return usageErrorf("up", "--timeout must not be negative")
	case c.IsSet("exit-code-from") && c.Bool("detach"):
		return usageErrorf("up", "--exit-code-from is for the foreground: -d does not wait for the end")
	}
	if err := errors.Join(checkLogLimits(c), checkNetwork(c), checkPull(c), checkWatch(c, files)); err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Ext(file) == ".kube" {
			return report.New(report.Usage, "podrun systemd install "+file+" makes its unit; podrun up runs the manifest that its Yaml= names", "%s is a unit of Quadlet, no manifest", file)
		}
	}
	if how := dryRunOf(c); how != dryNone {
		return f.rehearse(c, files, how)
	}
	if f.getenv(reexec.WokenEnv) != "" {
		return f.woken(c)
	}
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	if n := systemd.NewNotifier(f.getenv); n != nil && !c.Bool("detach") {
		return f.upUnit(c, files, n, signals)
	}
	defer f.foresee().end()
	l, rule, err := f.newLaunch(c, files)
	if err != nil {
		return err
	}
	defer l.release()
	l.waits, l.background = true, true
	for _, p := range l.pods {
		p.failFast = c.Bool("fail-fast")
	}
	began, timeout := time.Now(), c.Duration("timeout")
	if err := interruptible(c.Context, signals, within(timeout, l.prepare)); err != nil {
		return err
	}
	if time.Since(began) > time.Second && timeout > 0 {
		timeout = max(timeout-time.Since(began).Truncate(time.Second), time.Second)
	}
	startErr := l.start()
	if !c.Bool("detach") {
		f.foresight.stay()
	}
	if c.Bool("watch") && len(l.pods)+len(l.workloads) > 0 {
		end, werr := (&fileWatch{front: f, c: c, files: files, shown: l.started(), makes: l.workplaces()}).begin()
		if werr != nil {
			return errors.Join(startErr, werr)
		}
		defer end()
	}
	if len(l.workloads) > 0 {
		return f.upWorkloads(c, l, rule, startErr, signals)
	}
	if len(l.pods) == 0 {
		return startErr
	}
	if c.Bool("detach") {
		err = f.detach(c.Context, l.started(), arrivalOf(c.Bool("wait")), timeout, signals)
	} else {
		how := showing{c.Bool("quiet"), rule, &atomic.Bool{}}
		err = f.foreground(c.Context, l.keeper, l.started(), how, signals)
		err = errors.Join(err, l.undo(c.Context, how))
	}
	return errors.Join(startErr, err)
}

// newLaunch reads what is to be brought to life, and makes sure that it can be here.
func (f *front) newLaunch(c *cli.Context, files []string) (*launch, exitFrom, error) {
	sources, readErr := f.readAll(files)
	docs, err := load(sources)
	if err := errors.Join(readErr, err); err != nil {
		return nil, "", err
	}
	if err := f.judgeIdle(docs.idle, c.Bool("strict")); err != nil {
		return nil, "", err
	}
	pods := docs.pods
	if len(pods) != 1 || len(docs.workloads) > 0 {
		f.foresight.end()
	}
	limitLogs(c, pods)
	if err := askNetwork(c, pods); err != nil {
		return nil, "", err
	}
	dirs, err := f.able(c.Context, c.Bool("require-limits"))
	if err != nil {
		return nil, "", err
	}
	if err := f.judgePolicy(dirs, docs, c.String("policy")); err != nil {
		return nil, "", err
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return nil, "", err
	}
	pull, err := f.pullOptions(c)
	if err != nil {
		return nil, "", err
	}
	l := &launch{front: f, dirs: dirs, keeper: keeper, requireLimits: c.Bool("require-limits"), replace: c.Bool("replace"), pull: pull, stored: docs.stored, said: f.err}
	l.logLimited = c.IsSet("log-max-size") || c.IsSet("log-max-files")
	if err := l.employ(docs.workloads); err != nil {
		return nil, "", err
	}
	for i := range docs.stored {
		if _, err := f.compared(dirs, &docs.stored[i]); err != nil {
			return nil, "", err
		}
	}
	for i := range pods {
		o := &pods[i]
		l.pods = append(l.pods, &upPod{object: o, place: dirs.Pod(o.Pod.Namespace, o.Pod.Name)})
	}
	f.made = l.made()
	l.pullAs(c.String("pull"))
	rule, err := exitRule(c.String("exit-code-from"), l.pods)
	return l, rule, err
}

// refusal is why no pod may be run here, or nil.
func refusal(findings []host.Finding, requireLimits bool) error {
	if err := host.FirstFailure(findings); err != nil || !requireLimits {
		return err
	}
	if f, ok := host.FindByName(findings, host.Limits); ok && f.Level != host.OK {
		return report.New(report.Failure, f.Cure, "%s, and --require-limits was given", f.Detail)
	}
	return nil
}

// interruptible runs do and ends its context at the first signal; at the second it
// does not wait for it any longer.
func interruptible(ctx context.Context, signals <-chan os.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case sig := <-signals:
		cancel()
		select {
		case <-done:
		case <-signals:
		}
		return interrupted(sig)
	}
}

// detach waits until every pod has come far enough or has succeeded.
func (f *front) detach(ctx context.Context, pods []*upPod, to arrival, timeout time.Duration, signals <-chan os.Signal) error {
	wait := func(ctx context.Context) error {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		errs := make([]error, len(pods))
		each(pods, func(i int, p *upPod) { errs[i] = f.await(ctx, p, to, timeout) })
		return errors.Join(errs...)
	}
	err := interruptible(ctx, signals, wait)
	f.warnOfLogout(pods, systemd.LingerEnabled)
	if said := asExit(err); said != nil && said.err == nil {
		for _, p := range pods {
			fmt.Fprintf(f.err, "podrun: pod %s is left as it is; podrun down %s removes it\n", p.place.Name, p.place.Name)
		}
	}
	return err
}
