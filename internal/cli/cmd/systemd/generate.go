package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/quadlet"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// generateCommand returns the command that podrun's generators of systemd run.
func generateCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "for systemd: make the units of Quadlet's files",
		ArgsUsage: "DIRECTORY [EARLY LATE]",
		Description: `systemd runs it at boot, at a login and with daemon-reload, by the generators of
podrun's package (systemd.generator(7)). It writes the units of Quadlet's files
to DIRECTORY, and their manifests to DIRECTORY/podrun. The files of a user are
in ~/.config/containers/systemd, the system's in /etc/containers/systemd;
QUADLET_UNIT_DIRS has other directories. Where podman's generator is installed
and not masked, it reads the files, and podrun writes nothing.

Examples:
  podrun systemd generate /tmp/units
`,
		Flags: unitScopeFlags(),
		Action: cmdutil.Action(func() cmdutil.Command {
			return &generateOptions{unitOptions: unitOptions{env: env}, made: map[string]string{}}
		}),
	}
}

type generateOptions struct {
	unitOptions
	made map[string]string // the files of the units, by the units' names
}

func (o *generateOptions) Validate() error {
	if len(o.words) != 1 && len(o.words) != 3 {
		return cmdutil.UsageErrorf("systemd generate", "systemd generate requires one directory, or systemd's three")
	}
	if o.user && os.Geteuid() == 0 { // root's own service manager: root's files are the system's
		o.words = nil
		return nil
	}
	return o.unitOptions.Validate()
}

func (o *generateOptions) Run(context.Context) error {
	if len(o.words) == 0 {
		return nil
	}
	sources, chosen := o.sources()
	set, err := quadletSet(o.env, sources, "")
	if err != nil {
		return fmt.Errorf("read the files of Quadlet: %w", err)
	}
	if len(set.Files) == 0 {
		return nil
	}
	if foreign := podmanGenerator(o.dirs.System); foreign != "" && !chosen {
		mask := filepath.Join("/etc/systemd", generatorDir(o.dirs.System), filepath.Base(foreign))
		fmt.Fprintf(o.env.ErrOut, "podrun: %s makes the units of Quadlet's files; ln -s /dev/null %s leaves them to podrun\n", foreign, mask)
		return nil
	}
	target, err := filepath.Abs(o.words[0])
	if err != nil {
		return fmt.Errorf("find %s: %w", o.words[0], err)
	}
	dirs := systemd.UnitDirs{System: o.dirs.System, Units: target, Manifests: filepath.Join(target, "podrun")}
	var errs []error
	for name := range set.Units() {
		if err := o.generate(set, dirs, name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// generate writes the unit of a file, its manifest, and the links that enable it.
func (o *generateOptions) generate(set *quadlet.Set, dirs systemd.UnitDirs, name string) error {
	path := set.Files[name][0].Name
	u := &unitFile{service: systemd.Service{System: dirs.System, Source: path}}
	var err error
	if u.service.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find podrun's own program: %w", err)
	}
	if err := quadletUnit(o.env, u, dirs, path, set); err != nil {
		return err
	}
	u.service.Extra["Unit"] = append(u.service.Extra["Unit"], "SourcePath="+systemd.EscapeSpecifiers(path))
	file := filepath.Join(dirs.Units, u.name)
	if other := o.made[u.name]; other != "" {
		return report.New(report.Usage, "set ServiceName= in one of the files", "%s and %s have the same unit, %s", other, path, u.name)
	}
	o.made[u.name] = path
	if u.manifest != nil {
		if err := os.MkdirAll(dirs.Manifests, 0o755); err != nil {
			return fmt.Errorf("store the manifest: %w", err)
		}
		if err := os.WriteFile(u.service.Manifest, u.manifest, 0o600); err != nil { // it may have secrets
			return fmt.Errorf("store the manifest: %w", err)
		}
	}
	if err := os.WriteFile(file, u.service.File(u.name), 0o644); err != nil {
		return fmt.Errorf("create the unit: %w", err)
	}
	for _, link := range quadlet.Links(u.name, u.service.Extra["Install"]) {
		at := filepath.Join(dirs.Units, link)
		to, err := filepath.Rel(filepath.Dir(at), file)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(at), 0o755)
		}
		if err == nil {
			err = os.Symlink(to, at)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("enable the unit: %w", err)
		}
	}
	return nil
}

// sources returns the directories of Quadlet's files with the directories below them, the first of which hide files of
// the same names (podman-systemd.unit(5), SYNOPSIS). chosen reports whether the caller has chosen them.
func (o *generateOptions) sources() (list []string, chosen bool) {
	var roots []string
	switch uid := strconv.Itoa(os.Getuid()); {
	case o.env.Getenv("QUADLET_UNIT_DIRS") != "":
		roots, chosen = filepath.SplitList(o.env.Getenv("QUADLET_UNIT_DIRS")), true
	case o.dirs.System:
		roots = []string{"/run/containers/systemd", "/etc/containers/systemd", "/usr/share/containers/systemd"}
	default:
		roots = []string{filepath.Join(o.env.ConfigHome(), "containers/systemd"), "/etc/containers/systemd/users/" + uid, "/etc/containers/systemd/users"}
		if runtime := o.env.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
			roots = append([]string{filepath.Join(runtime, "containers/systemd")}, roots...)
		}
	}
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error { // what cannot be read has no files
			switch {
			case err != nil || !e.IsDir():
			case strings.HasSuffix(dir, ".d"), dir != root && strings.HasPrefix(dir, "/etc/containers/systemd/users"):
				return fs.SkipDir
			default:
				list = append(list, dir)
			}
			return nil
		})
	}
	return list, chosen
}

// generatorDir returns the name of the directories of generators.
func generatorDir(system bool) string {
	if system {
		return "system-generators"
	}
	return "user-generators"
}

// podmanGenerator returns the path of podman's generator, or "" if there is none or it is masked.
func podmanGenerator(system bool) string {
	name := "podman-user-generator"
	if system {
		name = "podman-system-generator"
	}
	return activeGenerator([]string{"/run/systemd", "/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"}, filepath.Join(generatorDir(system), name))
}

// activeGenerator returns the path of a generator in the first directory that has it, or "" if it is masked there: an
// empty file, or a link to /dev/null (systemd.generator(7)).
func activeGenerator(dirs []string, name string) string {
	i := slices.IndexFunc(dirs, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
	if i < 0 {
		return ""
	}
	path := filepath.Join(dirs[i], name)
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return ""
	}
	return path
}
