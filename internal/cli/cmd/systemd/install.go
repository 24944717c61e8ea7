package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/unit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

func installCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "install",
		Usage:     "create a unit that runs a manifest's pods",
		ArgsUsage: "FILE",
		Description: `Checks the manifest, stores a copy in the configuration directory
(~/.config/podrun/pods, for root /etc/podrun/pods), creates podrun@NAME.service
and enables it: the pods start at boot. NAME is the pod's name. Running it again
installs the current file. For a .kube, .container or .pod file of Quadlet it
creates the service that podman would; the manifests that a .kube file lists are
not copied. A .pod file needs its .container files in the same directory, and
x@NAME.container may be an instance of x@.container.

Examples:
  podrun systemd install --now web.yaml
  podrun systemd install --name site site.yaml
  podrun systemd install ~/.config/containers/systemd/web.kube
  podrun systemd install --now web.container
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "now", Usage: "start the pods, or change running ones to match the manifest, with a restart if needed"},
			&cli.StringFlag{Name: "name", Usage: "name the unit podrun@`NAME`"},
			&cli.StringFlag{Name: "sdnotify", Value: string(unit.ActiveReady), Usage: "the unit is active when all pods are in this `STATE`: ready, or running (its app containers have started)"},
			cmdutil.UnsafeSysctlFlag(),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &installOptions{unitOptions: unitOptions{env: env}} }),
	}
}

type installOptions struct {
	unitOptions
	now           bool
	name          string
	sdnotify      unit.ActiveWhen
	unsafeSysctls []string // --allow-unsafe-sysctl
}

func (o *installOptions) Complete(c *cli.Context) error {
	o.now, o.name, o.unsafeSysctls = c.Bool("now"), c.String("name"), c.StringSlice("allow-unsafe-sysctl")
	o.sdnotify = unit.ActiveWhen(c.String("sdnotify"))
	return o.unitOptions.Complete(c)
}

func (o *installOptions) Validate() error {
	if len(o.words) != 1 {
		return cmdutil.UsageErrorf("systemd install", "systemd install requires one file")
	}
	if !o.sdnotify.Known() {
		return cmdutil.UsageErrorf("systemd install", "--sdnotify must be ready or running, not %q", o.sdnotify)
	}
	return o.unitOptions.Validate()
}

func (o *installOptions) Run(ctx context.Context) error {
	u, err := unitOf(o.env, o.dirs, o.words[0], o.name)
	if err != nil {
		return err
	}
	if err := errors.Join(resource.RefuseGenerated(u.docs, "systemd install"), admission.CheckSysctls(u.docs, o.unsafeSysctls)); err != nil {
		return err
	}
	for _, name := range o.unsafeSysctls {
		u.service.PodOptions = append(u.service.PodOptions, "--allow-unsafe-sysctl", name)
	}
	o.setActiveWhen(u)
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error { return o.install(ctx, u) })
}

// setActiveWhen sets when the unit is active. It warns if a pod of a unit that is active when it is ready may not become
// ready: the unit, and at boot the user's manager, is starting until then.
func (o *installOptions) setActiveWhen(u *unitFile) {
	switch waits := podThatMayNotBeReady(u); {
	case o.sdnotify == unit.ActiveRunning:
		u.service.Args = append(u.service.Args, "--sdnotify", string(o.sdnotify))
	case waits != "":
		fmt.Fprintf(o.env.ErrOut, "podrun: %s is active when pod %s is ready, and starting until then; --sdnotify running makes it active when its containers run\n", u.short(), waits)
	}
}

// podThatMayNotBeReady returns the name of a pod that is not ready as soon as it runs, or "".
func podThatMayNotBeReady(u *unitFile) string {
	for _, o := range u.docs.Pods {
		waits := len(o.Pod.Spec.ReadinessGates) > 0
		for _, c := range slices.Concat(o.Pod.Spec.InitContainers, o.Pod.Spec.Containers) {
			waits = waits || c.ReadinessProbe != nil || c.StartupProbe != nil
		}
		if waits {
			return o.Pod.Name
		}
	}
	return ""
}

// managerTime is how long the service manager may take for anything but starting or stopping a pod.
const managerTime = 3 * time.Minute

func (o *installOptions) install(ctx context.Context, u *unitFile) error {
	manager, err := systemd.ConnectOwn(ctx)
	if err != nil {
		return err
	}
	defer manager.Close()
	soon, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	changed, err := o.place(soon, manager, u)
	if err != nil {
		return err
	}
	state, _, err := manager.Active(soon, u.name)
	if err != nil {
		return err
	}
	o.reportInstalled(u, changed, state)
	switch {
	case !o.now:
		return nil
	case state == "active":
		return o.start(ctx, manager, u, manager.ReloadOrRestart)
	}
	if err := o.start(ctx, manager, u, manager.Start); err != nil {
		return err
	}
	fmt.Fprintf(o.env.Out, "%s started\n", u.name)
	return nil
}

// place writes a unit's files and enables it; changed reports whether the files differ from the existing ones.
func (o *installOptions) place(ctx context.Context, manager *systemd.Manager, u *unitFile) (changed bool, err error) {
	if changed, err = u.write(o.dirs); err != nil {
		return false, err
	}
	var disabled, enabled bool
	if changed {
		if err := manager.Reload(ctx); err != nil {
			return false, err
		}
		if disabled, err = manager.Disable(ctx, u.name); err != nil { // WantedBy= may have changed
			return false, err
		}
	}
	if u.enable {
		if enabled, err = manager.Enable(ctx, u.name); err != nil {
			return false, err
		}
	}
	if disabled || enabled { // makes the manager read the links again
		err = manager.Reload(ctx)
	}
	return changed, err
}

// start starts a unit, or changes a running one, by do.
func (o *installOptions) start(ctx context.Context, manager *systemd.Manager, u *unitFile, do func(context.Context, string) error) error {
	if err := startAndReport(ctx, o.env, manager, u, do); err != nil {
		return report.New(report.Failure, "systemctl"+userOption(o.dirs)+" status "+u.short()+", and journalctl"+userOption(o.dirs)+" -u "+u.short(), "%s does not start: %w", u.name, err)
	}
	return nil
}

func userOption(dirs systemd.UnitDirs) string {
	if dirs.System {
		return ""
	}
	return " --user"
}

// write writes the unit's files; changed reports whether they differ from the existing ones. It overwrites neither
// a file that podrun has not written nor the unit of another file that still exists.
func (u *unitFile) write(dirs systemd.UnitDirs) (changed bool, err error) {
	path := filepath.Join(dirs.Units, u.name)
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, fmt.Errorf("cannot create the unit: %w", err)
	case !systemd.IsGenerated(old):
		return false, report.New(report.Failure, "remove it, or choose another name (--name, or ServiceName= in a .kube file)", "%s is not a unit of podrun", path)
	default:
		source := systemd.SourceOf(old)
		if source == u.service.Source {
			break
		}
		u.replaces = source
		if isFile(source) {
			return false, report.New(report.Failure, "choose another name (--name, or ServiceName= in a .kube file), or podrun systemd uninstall "+u.short(),
				"%s is the unit of %s", u.name, report.Escape(source))
		}
	}
	text := u.text
	if text == nil {
		text = u.service.File(u.name)
	}
	if stored := u.service.Manifest; u.manifest != nil {
		before, err := os.ReadFile(stored)
		if err == nil && old == nil && !bytes.Equal(before, u.manifest) {
			return false, report.New(report.Failure, "podrun systemd install "+stored+" creates its unit; or choose another name with --name", "%s already exists and does not belong to a unit of podrun", stored)
		}
		if !bytes.Equal(before, u.manifest) {
			changed = true
			if err := put(stored, u.manifest, store.WriteFile); err != nil { // mode 0600: it may have secrets
				return false, fmt.Errorf("cannot store the manifest: %w", err)
			}
		}
	}
	if !sameUnit(old, text) {
		changed = true
		if err := put(path, text, store.WritePublic); err != nil {
			return false, fmt.Errorf("cannot create the unit: %w", err)
		}
	}
	return changed, nil
}

// isFile reports whether a file exists.
func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sameUnit compares units, ignoring the source, which has no effect.
func sameUnit(a, b []byte) bool {
	strip := func(text []byte) string {
		var keep []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "Source=") {
				keep = append(keep, line)
			}
		}
		return strings.Join(keep, "")
	}
	return len(a) > 0 && strip(a) == strip(b)
}

// put writes a file durably, and creates its directory if needed.
func put(path string, text []byte, write func(string, []byte) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return write(path, text)
}

func installedWord(changed bool) string {
	if changed {
		return "installed"
	}
	return "unchanged"
}

func (o *installOptions) reportInstalled(u *unitFile, changed bool, state string) {
	env := o.env
	fmt.Fprintf(env.Out, "%s %s\n", u.name, installedWord(changed))
	if u.replaces != "" {
		fmt.Fprintf(env.ErrOut, "podrun: it replaces the unit of %s, which no longer exists\n", report.Escape(u.replaces))
	}
	user := userOption(o.dirs)
	switch {
	case o.now:
	case changed && state == "active" && u.text != nil:
		fmt.Fprintf(env.ErrOut, "podrun: systemctl%s restart %s runs it with its new options\n", user, u.short())
	case changed && state == "active":
		fmt.Fprintf(env.ErrOut, "podrun: running pods are unchanged: systemctl%s restart %s creates them again\n", user, u.short())
	case state != "active":
		fmt.Fprintf(env.ErrOut, "podrun: systemctl%s start %s starts it now\n", user, u.short())
	}
	if !u.enable {
		fmt.Fprintf(env.ErrOut, "podrun: %s does not start at boot: its [Install] section is empty\n", u.short())
	} else {
		o.warnOfLingering(u)
	}
}

// warnOfLingering warns of a unit of a user whose units end with the login.
func (o *installOptions) warnOfLingering(u *unitFile) {
	if !o.dirs.System && !systemd.LingerEnabled() {
		fmt.Fprintf(o.env.ErrOut, "podrun: warning: without lingering %s starts when you log in and stops when you log out; loginctl enable-linger starts it at boot\n", u.short())
	}
}

// startAndReport waits for a unit's start and prints its status text meanwhile.
func startAndReport(ctx context.Context, env *cmdutil.Env, m *systemd.Manager, u *unitFile, do func(context.Context, string) error) error {
	if err := m.ResetFailed(ctx, u.name); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- do(ctx, u.name) }()
	lastStatus := ""
	for tick := time.NewTicker(time.Second); ; {
		select {
		case err := <-done:
			tick.Stop()
			return err
		case <-tick.C:
			if _, status, err := m.Active(ctx, u.name); err == nil && status != lastStatus && status != "" {
				lastStatus = status
				fmt.Fprintf(env.ErrOut, "podrun: %s: %s\n", u.short(), report.Escape(status))
			}
		}
	}
}
