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

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

func uninstallCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "uninstall",
		Usage:     "stop and remove units made by install",
		ArgsUsage: "NAME...",
		Description: `Stops the units, which ends their pods, and removes the files that install has
made: the unit, its links, and the copy of the manifest.

Examples:
  podrun systemd uninstall web
`,
		Flags:  unitScopeFlags(),
		Action: func(c *cli.Context) error { return runUninstall(env, c) },
	}
}

func showUnitCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the unit of a file, or an installed one",
		ArgsUsage: "FILE | NAME | --template",
		Description: `Prints the unit that install would make from a file, or an installed unit. The
template podrun@.service runs ~/.config/podrun/pods/NAME.yaml (for root
/etc/podrun/pods/NAME.yaml) as podrun@NAME, without install.

Examples:
  podrun systemd show web.yaml
  podrun systemd show web
  podrun systemd show --template > ~/.config/systemd/user/podrun@.service
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "template", Usage: "print podrun@.service"},
		),
		Action: func(c *cli.Context) error { return runShow(env, c) },
	}
}

func runShow(env *cmdutil.Env, c *cli.Context) error {
	if c.NArg() != 1 && !c.Bool("template") || c.NArg() > 0 && c.Bool("template") {
		return cmdutil.UsageErrorf("systemd show", "systemd show takes one file, one name, or --template")
	}
	dirs, err := chooseUnitDirs(env, c)
	if err != nil {
		return err
	}
	if c.Bool("template") {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find podrun's own program: %w", err)
		}
		_, err = env.Out.Write(systemd.Template(program, dirs.System))
		return err
	}
	word := c.Args().First()
	if path, text, err := installed(dirs, word); err == nil {
		fmt.Fprintf(env.Out, "# %s\n%s", path, text)
		return nil
	} else if _, serr := os.Stat(word); errors.Is(serr, fs.ErrNotExist) && word != "-" {
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
	return nil
}

// installed finds a unit by the user's word: web, podrun@web or web.service.
func installed(dirs systemd.UnitDirs, word string) (path string, text []byte, err error) {
	missing := report.New(report.Failure, "podrun systemd install FILE makes one", "there is no unit %q of podrun's", word)
	if word == "" || strings.ContainsRune(word, '/') {
		return "", nil, missing
	}
	short := strings.TrimSuffix(word, ".service")
	for _, name := range []string{"podrun@" + short, short} {
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

func runUninstall(env *cmdutil.Env, c *cli.Context) error {
	if c.NArg() == 0 {
		return cmdutil.UsageErrorf("systemd uninstall", "systemd uninstall takes the names of units")
	}
	dirs, err := chooseUnitDirs(env, c)
	if err != nil {
		return err
	}
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return cmdutil.Interruptible(c.Context, signals, func(ctx context.Context) error {
		manager, err := systemd.ConnectOwn(ctx)
		if err != nil {
			return err
		}
		defer manager.Close()
		var errs []error
		for _, word := range c.Args().Slice() {
			errs = append(errs, uninstallUnit(ctx, env, manager, dirs, word))
		}
		return errors.Join(errs...)
	})
}

func uninstallUnit(ctx context.Context, env *cmdutil.Env, m *systemd.Manager, dirs systemd.UnitDirs, word string) error {
	path, text, err := installed(dirs, word)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if err := m.Stop(ctx, name); err != nil {
		return report.New(report.Failure, "podrun ps shows what runs; try again", "%s does not stop, and stays: %w", name, err)
	}
	soon, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	if _, err := m.Disable(soon, name); err != nil {
		return err
	}
	for _, file := range []string{path, systemd.ManifestOf(text)} {
		if file == "" {
			continue
		}
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
	if err := m.ResetFailed(soon, name); err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "%s uninstalled\n", name)
	return nil
}
