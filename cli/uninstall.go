package cli

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

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

func (f *front) uninstallCommand() *cli.Command {
	return &cli.Command{
		Name:      "uninstall",
		Usage:     "stop and remove units that install has made",
		ArgsUsage: "NAME...",
		Description: `Stops the units, which ends their pods, and removes what install has made: the
unit, its place in the machine's start, and the copy of the manifest.

Examples:
  podrun systemd uninstall web
`,
		Flags:  unitScopeFlags(),
		Action: f.uninstall,
	}
}

func (f *front) showUnitCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the unit of a file, or an installed one",
		ArgsUsage: "FILE | NAME | --template",
		Description: `Prints the unit that install would make of a file, or the installed unit of a
name. The template podrun@.service runs ~/.config/podrun/pods/NAME.yaml (for
root /etc/podrun/pods/NAME.yaml) as podrun@NAME, without install.

Examples:
  podrun systemd show web.yaml
  podrun systemd show web
  podrun systemd show --template > ~/.config/systemd/user/podrun@.service
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "template", Usage: "print podrun@.service"},
		),
		Action: f.showUnit,
	}
}

func (f *front) showUnit(c *cli.Context) error {
	if c.NArg() != 1 && !c.Bool("template") || c.NArg() > 0 && c.Bool("template") {
		return usageErrorf("systemd show", "systemd show takes one file, one name, or --template")
	}
	dirs, err := f.unitDirs(c)
	if err != nil {
		return err
	}
	if c.Bool("template") {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find podrun's own program: %w", err)
		}
		_, err = f.out.Write(systemd.Template(program, dirs.system))
		return err
	}
	word := c.Args().First()
	if path, text, err := installed(dirs, word); err == nil {
		fmt.Fprintf(f.out, "# %s\n%s", path, text)
		return nil
	} else if _, serr := os.Stat(word); errors.Is(serr, fs.ErrNotExist) && word != "-" {
		return err
	}
	name := ""
	if word == "-" {
		name = "stdin"
	}
	u, err := f.unitOf(dirs, word, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "# %s\n%s", filepath.Join(dirs.units, u.name), u.service.File(u.name))
	return nil
}

// installed finds the unit that a user names: web, podrun@web or web.service.
func installed(dirs unitDirs, word string) (path string, text []byte, err error) {
	missing := report.New(report.Failure, "podrun systemd install FILE makes one", "there is no unit %q of podrun's", word)
	if word == "" || strings.ContainsRune(word, '/') {
		return "", nil, missing
	}
	short := strings.TrimSuffix(word, ".service")
	for _, name := range []string{"podrun@" + short, short} {
		path := filepath.Join(dirs.units, name+".service")
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

func (f *front) uninstall(c *cli.Context) error {
	if c.NArg() == 0 {
		return usageErrorf("systemd uninstall", "systemd uninstall takes the names of units")
	}
	dirs, err := f.unitDirs(c)
	if err != nil {
		return err
	}
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return interruptible(c.Context, signals, func(ctx context.Context) error {
		manager, err := connect(ctx)
		if err != nil {
			return err
		}
		defer manager.Close()
		var errs []error
		for _, word := range c.Args().Slice() {
			errs = append(errs, f.uninstallUnit(ctx, manager, dirs, word))
		}
		return errors.Join(errs...)
	})
}

func (f *front) uninstallUnit(ctx context.Context, m *systemd.Manager, dirs unitDirs, word string) error {
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
	if !dirs.system {
		os.Remove(dirs.manifests) // if that was the last
		os.Remove(filepath.Dir(dirs.manifests))
	}
	if err := m.Reload(soon); err != nil {
		return err
	}
	if err := m.ResetFailed(soon, name); err != nil {
		return err
	}
	fmt.Fprintf(f.out, "%s uninstalled\n", name)
	return nil
}
