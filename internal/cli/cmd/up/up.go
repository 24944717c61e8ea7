// Package up has the commands that take manifests of pods: up, apply, create -f, diff and validate.
package up

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/unit"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// NewCommand returns the command up.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "run pods from their manifests",
		ArgsUsage: "FILE... [SERVICE...] | -f FILE|DIR|URL|oci://REF | -k DIR",
		Description: `Checks the manifests, pulls missing images and runs the pods. In the foreground
it shows the output of all containers and exits when the pods have ended. Ctrl-C
stops them gracefully and removes them, with the Services, ConfigMaps and
Secrets that it has created; a second Ctrl-C stops them at once. With -d it
returns when the pods are running or, with --wait, ready; a pod that cannot be
started does not hold up the others.
A compose file is converted first, as podrun convert does, and images that it
builds are built. Without a file up uses the compose file of the directory;
words after one that are no files are services: up runs these, and what they
depend on. oci://REFERENCE is an artifact with manifests in a registry,
oci:DIRECTORY[:NAME] is one in an OCI layout.
In a systemd unit with Type=notify it reports the state of the pods to systemd;
podrun systemd makes such units.

A running pod is changed to match its manifest: CPU and memory are resized in
place, a container with another image is restarted alone, labels are updated.
Other differences are listed and refused; --replace stops and removes the pod
and creates a new one; the replacement is completed even if this command is
killed. --watch applies the files again whenever one has changed. With --sync,
or the annotation podrun.dev/sync, it copies changed files into containers,
which keep them when they are restarted.

A pod with missing images is Pending. They are pulled in the background, even
after podrun up has exited, and the pod starts when all of them are present.

For a Deployment, Job or another workload it creates the pods. In the foreground
it is their controller; with -d a background process is. With --wait a
Deployment must be rolled out and a Job complete: if it fails, up exits with the
code of the container that failed last.

Examples:
  podrun up web.yaml
  podrun up -d web.yaml worker.yaml
  podrun up -d compose.yaml
  podrun up -d oci://registry.example.org/team/set:1
  podrun up -d --wait --timeout 2m web.yaml
  podrun up --exit-code-from test suite.yaml
  podrun up --watch web.yaml settings.yaml
  podrun up --watch --sync ./src:web:/app web.yaml
  generate-pod | podrun up -
`,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "run the pods of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.PathFlag(),
			cmdutil.EnvFileFlag(),
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the pods are running, and leave them running"},
			&cli.BoolFlag{Name: "wait", Usage: "with -d: return when the pods are ready, not as soon as they run"},
			&cli.DurationFlag{Name: "timeout", Usage: "with -d: give up waiting after this `DURATION` (90s, 5m); the pods keep running"},
			&cli.BoolFlag{Name: "fail-fast", Usage: "with -d: return an error after the first failed pull of an image; the pod keeps waiting, and starts when the image is available"},
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot be changed to match its manifest, and create a new one"},
			&cli.StringFlag{Name: "network", Usage: "the network `MODE` of pods that do not set it: auto, masquerade, tproxy, netstack, host or none"},
			&cli.StringSliceFlag{Name: "publish", Aliases: []string{"p"}, Usage: "open a port of the host for a port of a pod, instead of its hostPort: `PORTS` is [IP:]HOSTPORT:PORT[/udp], or ranges"},
			&cli.StringSliceFlag{Name: "auto-update", Usage: "what podrun update --auto does with the pods: `POLICY` is registry, local, or CONTAINER/POLICY"},
			&cli.BoolFlag{Name: "require-limits", Usage: "refuse to run where CPU and memory limits cannot be enforced"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "in the foreground: do not show what the containers write (podrun logs does)"},
			cmdutil.ResultFormatFlag(),
			cmdutil.DryRunFlag(cmdutil.DryRunUsage),
			&cli.StringFlag{Name: "exit-code-from", Usage: "end with the exit code of this `CONTAINER`; or: any, all (fail if any or all app containers failed), none (never fail because of them)"},
			&cli.StringFlag{Name: "sdnotify", Value: string(unit.ActiveReady), Usage: "in a unit of systemd: the unit is active when all pods are in this `STATE`: ready, or running (its app containers have started)"},
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			cmdutil.UnsafeSysctlFlag(),
			&cli.StringFlag{Name: "pull", Usage: "override imagePullPolicy once: `POLICY` is always, missing, never, or newer, which is always, but uses the local image if the pull fails"},
			cmdutil.TLSVerifyFlag(),
			&cli.StringFlag{Name: "log-max-size", Usage: "rotate a container's log at this `SIZE`, unless the pod has the annotation " + podutil.AnnotationLogMaxSize + " (default: 10Mi)"},
			&cli.StringFlag{Name: "log-max-files", Usage: "keep this many `FILES` of a container's log, unless the pod has the annotation " + podutil.AnnotationLogMaxFiles + " (default: 5)"},
		}, slices.Concat(watchFlags(), buildFlags(), atomicFlags())...),
		Action: cmdutil.Action(printers.WithResult(env, func(env *cmdutil.Env) cmdutil.Command { return &upOptions{runOptions: newRunOptions(env)} })),
	}
}

// upOptions are the options of up.
type upOptions struct {
	runOptions
	detach, wait, failFast, quiet bool
	sdnotify                      unit.ActiveWhen
	woken                         string // what ended the unit loop, if this process was one before; else ""
}

// Complete reads the command line.
func (o *upOptions) Complete(c *cli.Context) error {
	if err := o.complete(c); err != nil {
		return err
	}
	o.detach, o.wait, o.failFast, o.timeout = c.Bool("detach"), c.Bool("wait"), c.Bool("fail-fast"), c.Duration("timeout")
	o.watch, o.quiet, o.requireLimits = c.Bool("watch"), c.Bool("quiet"), c.Bool("require-limits")
	o.network, o.pullPolicy, o.exitCodeFrom = c.String("network"), c.String("pull"), c.String("exit-code-from")
	o.sdnotify = unit.ActiveWhen(c.String("sdnotify"))
	o.logMaxSize, o.logMaxFiles = c.String("log-max-size"), c.String("log-max-files")
	if o.watch {
		o.named = "--watch" // it finds the pods of a changed file by their names
	}
	for _, text := range c.StringSlice("sync") {
		f, err := parseSyncFlag(text)
		if err != nil {
			return err
		}
		o.sync = append(o.sync, f)
	}
	o.atomicOptions.complete(c)
	if c.Bool("build") {
		o.env.Compose.Build.Force = true
	}
	o.env.Compose.Build.Builder = cmp.Or(c.String("builder"), o.env.Compose.Build.Builder)
	o.woken, o.autoUpdate = o.env.Getenv(protocol.EnvWokenBy), c.StringSlice("auto-update")
	for _, text := range c.StringSlice("publish") {
		p, err := manifest.ParsePublishedPort(text)
		if err != nil {
			return cmdutil.UsageErrorf("up", "--publish cannot be %q: %v", text, err)
		}
		o.publish = append(o.publish, p)
	}
	return nil
}

// Validate checks the options.
func (o *upOptions) Validate() error {
	switch {
	case !o.hasFiles():
		return cmdutil.UsageErrorf("up", "up requires the files of pods; here is no %s", strings.Join(api.FileNames, ", "))
	case o.wait && !o.detach:
		return cmdutil.UsageErrorf("up", "--wait requires -d: in the foreground, up ends with the pods")
	case o.timeout != 0 && !o.detach:
		return cmdutil.UsageErrorf("up", "--timeout requires -d: in the foreground, up ends with the pods")
	case o.failFast && !o.detach:
		return cmdutil.UsageErrorf("up", "--fail-fast requires -d: in the foreground, up ends with the pods")
	case o.timeout < 0:
		return cmdutil.UsageErrorf("up", "--timeout must not be negative")
	case o.atomic && (!o.detach || o.failFast || len(o.publish)+len(o.autoUpdate) > 0 || o.network+o.pullPolicy+o.logMaxSize+o.logMaxFiles != ""):
		return cmdutil.UsageErrorf("up", "--atomic requires -d, and takes the settings of pods from their manifests only")
	case o.exitCodeFrom != "" && o.detach:
		return cmdutil.UsageErrorf("up", "--exit-code-from and -d are mutually exclusive: -d does not wait for the end")
	}
	if err := errors.Join(o.validateValues(), o.validateWatch(), o.validateAtomic("up")); err != nil {
		return err
	}
	for _, file := range o.files {
		if filepath.Ext(file) == ".kube" {
			return report.New(report.Usage, "podrun systemd install "+file+" creates its unit; podrun up runs the manifest in its Yaml=", "%s is a unit of Quadlet, not a manifest", file)
		}
	}
	return nil
}

// validateValues checks the values of flags.
func (o *upOptions) validateValues() error {
	var errs []error
	if _, err := podutil.ParseLogMaxSize(o.logMaxSize); o.logMaxSize != "" && err != nil {
		errs = append(errs, cmdutil.UsageErrorf("up", "--log-max-size cannot be %q: it %v", o.logMaxSize, err))
	}
	if _, err := podutil.ParseLogMaxFiles(o.logMaxFiles); o.logMaxFiles != "" && err != nil {
		errs = append(errs, cmdutil.UsageErrorf("up", "--log-max-files cannot be %q: it %v", o.logMaxFiles, err))
	}
	if o.network != "" && !slices.Contains(pod.NetworkModes, o.network) {
		errs = append(errs, cmdutil.UsageErrorf("up", "--network cannot be %q: use %s", o.network, strings.Join(pod.NetworkModes, ", ")))
	}
	if !o.sdnotify.Known() {
		errs = append(errs, cmdutil.UsageErrorf("up", "--sdnotify must be ready or running, not %q", o.sdnotify))
	}
	if _, known := podup.PullPolicies[o.pullPolicy]; o.pullPolicy != "" && !known {
		errs = append(errs, cmdutil.UsageErrorf("up", "--pull must be always, missing, never or newer, not %q", o.pullPolicy))
	}
	return errors.Join(errs...)
}

// validateWatch checks that --watch fits the other options.
func (o *upOptions) validateWatch() error {
	switch {
	case !o.watch && len(o.sync) > 0:
		return cmdutil.UsageErrorf("up", "--sync requires --watch")
	case !o.watch:
		return nil
	case o.detach:
		return cmdutil.UsageErrorf("up", "--watch and -d are mutually exclusive: with -d no command keeps running")
	case slices.ContainsFunc(o.files, resource.IsArtifact):
		return cmdutil.UsageErrorf("up", "--watch watches files and directories, not artifacts")
	case slices.ContainsFunc(o.files, resource.IsKustomization):
		return cmdutil.UsageErrorf("up", "--watch watches files and directories, not kustomizations")
	case o.env.ArtifactPath != "":
		return cmdutil.UsageErrorf("up", "--watch and --path are mutually exclusive: name the directory itself")
	}
	for _, file := range o.files {
		if file == "-" || resource.IsURL(file) {
			return cmdutil.UsageErrorf("up", "--watch requires files: %s is not a file", resource.DisplayName(file))
		}
	}
	return nil
}

// Run runs the pods: in the foreground, in a unit of systemd, or with -d in the background.
func (o *upOptions) Run(ctx context.Context) error {
	switch {
	case o.dryRun != cmdutil.DryRunNone:
		return o.runDry(ctx)
	case o.atomic:
		return o.runAtomic(ctx)
	}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	command := commandHooks{env: o.env, options: &o.runOptions, retryPulls: true}
	switch n := systemd.NewNotifier(o.env.Getenv); {
	case o.detach && o.woken == "":
		return o.run(ctx, signals, &detachHooks{commandHooks: command, upOptions: o, signals: signals})
	case n == nil && o.woken == "":
		return o.run(ctx, signals, &foregroundHooks{commandHooks: command, upOptions: o, signals: signals})
	default:
		dirs, err := o.env.Dirs()
		if err != nil {
			return err
		}
		s := unit.NewMainProcess(o.env, dirs, nil, n)
		s.Quiet, s.Signals, s.ActiveWhen = o.quiet, signals, o.sdnotify
		if o.woken != "" {
			return s.Resume(ctx, o.woken, follow.ExitCodeFrom(o.exitCodeFrom))
		}
		return o.run(ctx, signals, s)
	}
}
