package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/quadlet"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

func uninstallCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "uninstall",
		Usage:     "stop and remove units created by install",
		ArgsUsage: "NAME...",
		Description: `Stops the units, which stops their pods, and removes the files that install has
created: the unit, its links, and the copy of the manifest. The pods of
install-node and install-follow keep running.

Examples:
  podrun systemd uninstall web
  podrun systemd uninstall follow-set
`,
		Flags:  unitScopeFlags(),
		Action: cmdutil.Action(func() cmdutil.Command { return &uninstallOptions{unitOptions{env: env}} }),
	}
}

func showUnitCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the unit of a file, or an installed one",
		ArgsUsage: "FILE | NAME | --template",
		Description: `Prints the unit that install would create from a file, or an installed unit, and
the manifest that a .container or .pod file of Quadlet becomes. The template
podrun@.service runs ~/.config/podrun/pods/NAME.yaml (for root
/etc/podrun/pods/NAME.yaml) as podrun@NAME, without install; --user and --system
select the template for the user's or the system's systemd; every user may print
both.

Examples:
  podrun systemd show web.yaml
  podrun systemd show web
  podrun systemd show --template > ~/.config/systemd/user/podrun@.service
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "template", Usage: "print podrun@.service"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &showOptions{unitOptions: unitOptions{env: env}} }),
	}
}

type showOptions struct {
	unitOptions
	template bool
}

func (o *showOptions) Complete(c *cli.Context) error {
	o.template = c.Bool("template")
	return o.unitOptions.Complete(c)
}

func (o *showOptions) Validate() error {
	if len(o.words) != 1 && !o.template || len(o.words) > 0 && o.template {
		return cmdutil.UsageErrorf("systemd show", "systemd show requires one file, one name, or --template")
	}
	if o.template && o.user != o.system { // it concerns no unit of this machine
		o.dirs.System = o.system
		return nil
	}
	return o.unitOptions.Validate()
}

func (o *showOptions) Run(context.Context) error {
	env, dirs := o.env, o.dirs
	if o.template {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find podrun's own program: %w", err)
		}
		_, err = env.Out.Write(systemd.Template(program, dirs.System))
		return err
	}
	word := o.words[0]
	if path, text, err := installed(dirs, word); err == nil {
		fmt.Fprintf(env.Out, "# %s\n%s", path, text)
		if systemd.FollowedBy(text) == "" {
			return nil
		}
		timer := systemd.FollowTimer(path)
		if text, err = os.ReadFile(timer); err != nil {
			return fmt.Errorf("read the unit: %w", err)
		}
		fmt.Fprintf(env.Out, "\n# %s\n%s", timer, text)
		return nil
	} else if _, serr := os.Stat(word); errors.Is(serr, fs.ErrNotExist) && word != "-" && !quadlet.IsFile(word) {
		return err
	}
	name := ""
	if word == "-" {
		name = "stdin"
	}
	u, err := unitOf(env, dirs, word, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "# %s\n%s", filepath.Join(dirs.Units, u.name), u.service.File(u.name))
	if quadlet.IsFile(u.service.Source) && u.manifest != nil {
		fmt.Fprintf(env.Out, "\n# %s\n%s", u.service.Manifest, u.manifest)
	}
	return nil
}

// installed finds a unit by the user's word: web, podrun@web, web.service or follow-web.
func installed(dirs systemd.UnitDirs, word string) (path string, text []byte, err error) {
	missing := report.New(report.Failure, "podrun systemd install FILE creates one", "there is no unit %q of podrun", word)
	if word == "" || strings.ContainsRune(word, '/') {
		return "", nil, missing
	}
	short := strings.TrimSuffix(word, ".service")
	names := []string{"podrun@" + short, short}
	if strings.HasPrefix(short, "follow-") {
		names = append(names, "podrun-"+short)
	}
	for _, name := range names {
		path := filepath.Join(dirs.Units, name+".service")
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", nil, fmt.Errorf("read the unit: %w", err)
		case systemd.IsGenerated(text):
			return path, text, nil
		}
	}
	return "", nil, missing
}

type uninstallOptions struct{ unitOptions }

func (o *uninstallOptions) Validate() error {
	if len(o.words) == 0 {
		return cmdutil.UsageErrorf("systemd uninstall", "systemd uninstall requires the names of units")
	}
	return o.unitOptions.Validate()
}

func (o *uninstallOptions) Run(ctx context.Context) error {
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		manager, err := systemd.ConnectOwn(ctx)
		if err != nil {
			return err
		}
		defer manager.Close()
		var errs []error
		for _, word := range o.words {
			errs = append(errs, o.uninstall(ctx, manager, word))
		}
		return errors.Join(errs...)
	})
}

func (o *uninstallOptions) uninstall(ctx context.Context, m *systemd.Manager, word string) error {
	dirs := o.dirs
	path, text, err := installed(dirs, word)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	units, files := []string{name}, []string{path}
	if manifest := systemd.ManifestOf(text); manifest != "" {
		files = append(files, manifest)
	}
	follows := systemd.FollowedBy(text) != ""
	if follows { // the timer first: it starts the service
		timer := systemd.FollowTimer(name)
		units, files = append([]string{timer}, units...), append([]string{filepath.Join(dirs.Units, timer)}, files...)
	}
	for _, unit := range units {
		if err := m.Stop(ctx, unit); err != nil {
			return report.New(report.Failure, "podrun ps shows what runs; try again", "cannot stop %s, it was not removed: %w", unit, err)
		}
	}
	soon, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	for _, unit := range units {
		if _, err := m.Disable(soon, unit); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the unit: %w", err)
		}
	}
	if !dirs.System {
		os.Remove(dirs.Manifests) // succeeds only when empty
		os.Remove(filepath.Dir(dirs.Manifests))
	}
	if err := m.Reload(soon); err != nil {
		return err
	}
	for _, unit := range units {
		if err := m.ResetFailed(soon, unit); err != nil {
			return err
		}
		fmt.Fprintf(o.env.Out, "%s uninstalled\n", unit)
	}
	if follows {
		set := systemd.FollowedSet(name)
		fmt.Fprintf(o.env.ErrOut, "podrun: the pods of set %s keep running: podrun follow rm %s removes them\n", set, set)
	}
	return nil
}
