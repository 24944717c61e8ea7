package systemd

import (
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
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

func installFollowCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "install-follow",
		Usage:     "create units that run podrun follow",
		ArgsUsage: "SOURCE [-- OPTIONS OF podrun follow]",
		Description: `Creates podrun-follow-NAME.service, which runs podrun follow --once, and
podrun-follow-NAME.timer, which starts it regularly, and enables both. At boot
the service starts the last version that was ready before any network is there;
then it looks for another one. The pods keep running when the units stop. podrun
systemd uninstall follow-NAME removes the units, podrun follow rm NAME the pods.

Examples:
  podrun systemd install-follow --now oci://registry.example.org/team/set:1
  podrun systemd install-follow --now --every 1h /srv/set -- --env-file box.env
  podrun systemd install-follow --on-calendar 'Sun 03:00' oci:/media/stick/set:1
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "now", Usage: "start the timer, look at the source, and wait until the set is ready"},
			&cli.StringFlag{Name: "name", Usage: "the `NAME` of the set; by default the last part of SOURCE"},
			&cli.DurationFlag{Name: "every", Value: 15 * time.Minute, Usage: "look again this `DURATION` after the last look, and up to a tenth of it later"},
			&cli.StringFlag{Name: "on-calendar", Usage: "look at the times `WHEN` (systemd.time(7)), and up to 15 minutes later"},
		),
		Action: cmdutil.Action(func() cmdutil.Command {
			return &installFollowOptions{installOptions{unitOptions: unitOptions{env: env}}, systemd.Follow{}}
		}),
	}
}

type installFollowOptions struct {
	installOptions
	units systemd.Follow
}

func (o *installFollowOptions) Complete(c *cli.Context) error {
	o.now, o.name = c.Bool("now"), c.String("name")
	o.units.Every, o.units.Calendar = c.Duration("every"), c.String("on-calendar")
	if c.IsSet("every") && c.IsSet("on-calendar") {
		return cmdutil.UsageErrorf("systemd install-follow", "--every and --on-calendar are mutually exclusive")
	}
	return o.unitOptions.Complete(c)
}

func (o *installFollowOptions) Validate() error {
	words := o.words
	switch {
	case len(words) == 0 || words[0] == "--":
		return cmdutil.UsageErrorf("systemd install-follow", "systemd install-follow requires one source")
	case len(words) > 1 && words[1] != "--":
		return cmdutil.UsageErrorf("systemd install-follow", "options of podrun follow come after --, not %s", words[1])
	case o.units.Every < time.Second:
		return cmdutil.UsageErrorf("systemd install-follow", "--every must be at least 1s, not %s", o.units.Every)
	case strings.ContainsFunc(strings.Join(words, "")+o.units.Calendar, unicode.IsControl):
		return report.New(report.Usage, "", "a unit cannot have control characters in its options")
	}
	var err error
	if o.units.Source, err = absoluteSource(words[0]); err != nil {
		return err
	}
	if len(words) > 1 {
		if o.units.Options, err = absoluteOptions(words[2:]); err != nil {
			return err
		}
	}
	if o.units.Name, err = resource.SetName(o.name, o.units.Source); err != nil {
		return err
	}
	return o.unitOptions.Validate()
}

// absoluteSource returns a source whose path, if it is one, is absolute.
func absoluteSource(source string) (string, error) {
	if name, ok := strings.CutPrefix(source, "oci://"); ok {
		if _, err := reference.Parse(name); err != nil {
			return "", report.New(report.Usage, "", "cannot follow %s: %w", source, err)
		}
		return source, nil
	}
	prefix := ""
	if resource.IsArtifact(source) {
		prefix = "oci:"
	} else if _, err := os.Stat(source); err != nil {
		return "", report.New(report.Usage, "oci://REFERENCE is an artifact in a registry", "cannot follow it: %w", err)
	}
	path, err := filepath.Abs(strings.TrimPrefix(source, prefix))
	return prefix + path, err
}

// pathOptions are the options of podrun follow whose values are paths, and placedOptions those that the units have.
var (
	pathOptions   = []string{"--env-file", "--report-key"}
	placedOptions = []string{"--name", "--every", "--once"}
)

// absoluteOptions returns options of podrun follow with absolute paths.
func absoluteOptions(words []string) (options []string, err error) {
	for i := 0; i < len(words); i++ {
		option, path, hasValue := strings.Cut(words[i], "=")
		if slices.Contains(placedOptions, option) {
			return nil, cmdutil.UsageErrorf("systemd install-follow", "%s comes before --", option)
		}
		options = append(options, words[i])
		if !slices.Contains(pathOptions, option) || !hasValue && i+1 == len(words) {
			continue
		}
		if !hasValue {
			i++
			path = words[i]
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		options = append(options[:len(options)-1], option, path)
	}
	return options, nil
}

func (o *installFollowOptions) Run(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find podrun's own program: %w", err)
	}
	o.units.Program, o.units.System = program, o.dirs.System
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = cmdutil.Interruptible(ctx, signals, o.installUnits)
	return withoutUnit(err, slices.Concat([]string{"follow", "--name", o.units.Name}, o.units.Options, []string{o.units.Source})...)
}

// installUnits writes the units and enables them. With --now it starts the timer, and the service.
func (o *installFollowOptions) installUnits(ctx context.Context) error {
	name := o.units.ServiceName()
	service := &unitFile{name: name, text: o.units.ServiceFile(), enable: true}
	timer := &unitFile{name: systemd.FollowTimer(name), text: o.units.TimerFile(), enable: true}
	if err := o.checkReplaced(name); err != nil {
		return err
	}
	manager, err := systemd.ConnectOwn(ctx)
	if err != nil {
		return err
	}
	defer manager.Close()
	soon, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	newTimer, err := o.writeTimer(soon, manager, timer)
	if err != nil {
		return err
	}
	if _, err := o.place(soon, manager, timer); err != nil {
		return err
	}
	newService, err := o.place(soon, manager, service)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.env.Out, "%s %s\n%s %s\n", service.name, installedWord(newService), timer.name, installedWord(newTimer))
	o.warnOfLingering(service)
	if !o.now {
		fmt.Fprintf(o.env.ErrOut, "podrun: systemctl%s start %s %s starts them now\n", userOption(o.dirs), timer.name, service.short())
		return nil
	}
	if err := manager.Start(soon, timer.name); err != nil {
		return fmt.Errorf("%s does not start: %w", timer.name, err)
	}
	return o.start(ctx, manager, service, manager.Start)
}

// checkReplaced returns an error if a service that has its name from the source follows another one.
func (o *installFollowOptions) checkReplaced(service string) error {
	old, err := os.ReadFile(filepath.Join(o.dirs.Units, service))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot create the unit: %w", err)
	}
	if source := systemd.FollowedBy(old); o.name == "" && source != "" && source != o.units.Source {
		return report.New(report.Failure, "--name "+o.units.Name+" makes it follow this source, another name makes another unit", "%s follows %s", service, report.Escape(source))
	}
	return nil
}

// writeTimer writes the timer's file. If the service manager refuses it, the former file is written again. A running
// timer is started again: with a refused file it would stay without a next time.
func (o *installFollowOptions) writeTimer(ctx context.Context, manager *systemd.Manager, timer *unitFile) (changed bool, err error) {
	path := filepath.Join(o.dirs.Units, timer.name)
	former, _ := os.ReadFile(path)
	if changed, err = timer.write(o.dirs); err != nil || !changed {
		return false, err
	}
	if err := manager.Reload(ctx); err != nil {
		return false, err
	}
	loaded, err := manager.Loaded(ctx, timer.name)
	if err != nil {
		return false, err
	}
	if !loaded {
		changed = false
		err = report.New(report.Usage, "systemd-analyze calendar shows how systemd reads a time", "systemd does not accept --on-calendar %q", o.units.Calendar)
		if former == nil {
			return false, errors.Join(err, os.Remove(path), manager.Reload(ctx))
		}
		err = errors.Join(err, store.WritePublic(path, former), manager.Reload(ctx))
	}
	if former != nil {
		err = errors.Join(err, manager.TryRestart(ctx, timer.name))
	}
	return changed, err
}
