// Package up has the commands that take manifests of pods: up, apply, diff and validate.
package up

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/admission"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/printers"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// NewCommand returns the command up.
func NewCommand(env *cmdutil.Env) *cli.Command {
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
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the pods are running, and leave them running"},
			&cli.BoolFlag{Name: "wait", Usage: "with -d: return when the pods are ready, not as soon as they run"},
			&cli.DurationFlag{Name: "timeout", Usage: "with -d: give up waiting after this `DURATION` (90s, 5m); the pods are left as they are"},
			&cli.BoolFlag{Name: "fail-fast", Usage: "with -d: return an error after the first failed pull of an image; the pod keeps waiting, and starts when the image has come"},
			&cli.BoolFlag{Name: "watch", Usage: "in the foreground: apply the files again whenever they change"},
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot become what its manifest says, and run it anew"},
			&cli.StringFlag{Name: "network", Usage: "connect pods that do not say themselves by this `MODE`: auto, masquerade, tproxy, netstack, host or none"},
			&cli.BoolFlag{Name: "require-limits", Usage: "refuse to run where CPU and memory limits cannot be enforced"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "in the foreground: do not show what the containers write (podrun logs does)"},
			cmdutil.ResultFormatFlag(),
			cmdutil.DryRunFlag(cmdutil.DryRunUsage),
			exitCodeFromFlag(),
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			pullFlag(),
			cmdutil.TLSVerifyFlag(),
		}, logLimitFlags()...),
		Action: cmdutil.Action(printers.WithResult(env, printers.Function(run))),
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	files := append(c.StringSlice("filename"), c.Args().Slice()...)
	switch {
	case len(files) == 0:
		return cmdutil.UsageErrorf("up", "up takes the files of pods")
	case c.Bool("wait") && !c.Bool("detach"):
		return cmdutil.UsageErrorf("up", "--wait is for -d: in the foreground, up ends with the pods")
	case c.IsSet("timeout") && !c.Bool("detach"):
		return cmdutil.UsageErrorf("up", "--timeout is for -d: in the foreground, up ends with the pods")
	case c.Bool("fail-fast") && !c.Bool("detach"):
		return cmdutil.UsageErrorf("up", "--fail-fast is for -d: in the foreground, up ends with the pods")
	case c.Duration("timeout") < 0:
		return cmdutil.UsageErrorf("up", "--timeout must not be negative")
	case c.IsSet("exit-code-from") && c.Bool("detach"):
		return cmdutil.UsageErrorf("up", "--exit-code-from is for the foreground: -d does not wait for the end")
	}
	if err := errors.Join(checkLogLimits(c), checkNetwork(c), checkPull(c), checkWatch(c, files)); err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Ext(file) == ".kube" {
			return report.New(report.Usage, "podrun systemd install "+file+" makes its unit; podrun up runs the manifest that its Yaml= names", "%s is a unit of Quadlet, no manifest", file)
		}
	}
	if how := cmdutil.DryRunOf(c); how != cmdutil.DryRunNone {
		return dryRunClient(env, c, files, how)
	}
	if env.Getenv(reexec.WokenEnv) != "" {
		return resumeUnit(env, c)
	}
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	if n := systemd.NewNotifier(env.Getenv); n != nil && !c.Bool("detach") {
		return upInUnit(env, c, files, n, signals)
	}
	defer env.StartPrespawn().End()
	l, rule, err := newRun(env, c, files)
	if err != nil {
		return err
	}
	defer l.Release()
	l.RetryPulls, l.Background = true, true
	for _, p := range l.Targets {
		p.FailFast = c.Bool("fail-fast")
	}
	began, timeout := time.Now(), c.Duration("timeout")
	if err := cmdutil.Interruptible(c.Context, signals, podup.WithTimeout(timeout, l.Prepare)); err != nil {
		return err
	}
	if time.Since(began) > time.Second && timeout > 0 {
		timeout = max(timeout-time.Since(began).Truncate(time.Second), time.Second)
	}
	startErr := l.Start()
	if !c.Bool("detach") {
		env.Prespawn.RestoreGC()
	}
	if c.Bool("watch") && len(l.Targets)+len(l.Workloads) > 0 {
		end, werr := (&fileWatcher{env: env, c: c, files: files, shown: l.Started(), makes: l.WorkloadRefs()}).begin()
		if werr != nil {
			return errors.Join(startErr, werr)
		}
		defer end()
	}
	if len(l.Workloads) > 0 {
		return upWorkloads(env, c, l, rule, startErr, signals)
	}
	if len(l.Targets) == 0 {
		return startErr
	}
	if c.Bool("detach") {
		err = rollout.AwaitPods(c.Context, env, l.Started(), rollout.GoalFor(c.Bool("wait")), timeout, signals)
	} else {
		how := foregroundOptions{c.Bool("quiet"), rule, &atomic.Bool{}}
		err = foreground(c.Context, env, l.Launcher, l.Started(), how, signals)
		err = errors.Join(err, deleteCreated(l, c.Context, how))
	}
	return errors.Join(startErr, err)
}

// newRun reads the manifests of a run, and checks that this machine can run them.
func newRun(env *cmdutil.Env, c *cli.Context, files []string) (*podup.Run, rollout.ExitCodeFrom, error) {
	sources, readErr := resource.ReadFiles(env, files)
	docs, err := resource.Load(sources)
	if err := errors.Join(readErr, err); err != nil {
		return nil, "", err
	}
	if err := reportIgnored(env, docs.Ignored, c.Bool("strict")); err != nil {
		return nil, "", err
	}
	pods := docs.Pods
	if len(pods) != 1 || len(docs.Workloads) > 0 {
		env.Prespawn.End()
	}
	applyLogLimits(c, pods)
	if err := applyNetworkFlag(c, pods); err != nil {
		return nil, "", err
	}
	dirs, err := env.Preflight(c.Context, c.Bool("require-limits"))
	if err != nil {
		return nil, "", err
	}
	if err := admission.CheckPodSecurity(env, dirs, docs, c.String("policy")); err != nil {
		return nil, "", err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return nil, "", err
	}
	pull, err := env.PullOptions(c)
	if err != nil {
		return nil, "", err
	}
	l := &podup.Run{Env: env, Dirs: dirs, Launcher: launcher, RequireLimits: c.Bool("require-limits"), Replace: c.Bool("replace"), Pull: pull, Stored: docs.Stored, ReportTo: env.ErrOut}
	l.LogLimited = c.IsSet("log-max-size") || c.IsSet("log-max-files")
	if err := l.AddWorkloads(docs.Workloads); err != nil {
		return nil, "", err
	}
	for i := range docs.Stored {
		if _, err := objects.Compare(env, dirs, &docs.Stored[i]); err != nil {
			return nil, "", err
		}
	}
	for i := range pods {
		o := &pods[i]
		l.Targets = append(l.Targets, &podup.Target{Object: o, Pod: dirs.Pod(o.Pod.Namespace, o.Pod.Name)})
	}
	env.Changed = l.ChangedObjects()
	l.PullAs(c.String("pull"))
	rule, err := rollout.ParseExitCodeFrom(c.String("exit-code-from"), l.Targets)
	return l, rule, err
}
