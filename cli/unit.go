package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/manifest"
)

// unit is a unit that podrun makes of a file.
type unit struct {
	name     string // podrun@web.service
	service  systemd.Service
	manifest []byte // its text, where it is copied to service.Manifest; nil: it stays where it is
	enable   bool
}

// short is what a user says to systemctl.
func (u *unit) short() string { return strings.TrimSuffix(u.name, ".service") }

// unitDirs are where units and their manifests lie.
type unitDirs struct {
	system           bool
	units, manifests string
}

func unitScopeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "user", Usage: "a unit of the calling user's systemd (the default, but for root)"},
		&cli.BoolFlag{Name: "system", Usage: "a unit of the system's; for root only"},
	}
}

// unitDirs chooses between the user's and the system's units.
func (f *front) unitDirs(c *cli.Context) (unitDirs, error) {
	root := os.Geteuid() == 0
	switch {
	case c.Bool("user") && c.Bool("system"):
		return unitDirs{}, usageErrorf("systemd "+c.Command.Name, "it is either --user or --system")
	case c.Bool("system") && !root:
		return unitDirs{}, report.New(report.Usage, "sudo podrun systemd "+c.Command.Name+" --system …, or leave --system out: a unit of your own starts with the machine too, with lingering",
			"units of the system are root's")
	case c.Bool("user") && root:
		return unitDirs{}, report.New(report.Usage, "leave --user out, or do it as the user whose pods they are", "root's pods are units of the system")
	}
	return ownUnits(f.getenv)
}

// ownUnits are the units of who is calling.
func ownUnits(getenv func(string) string) (unitDirs, error) {
	if os.Geteuid() == 0 {
		return unitDirs{true, "/etc/systemd/system", "/etc/podrun/pods"}, nil
	}
	config := getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(getenv("HOME"), ".config")
	}
	if !filepath.IsAbs(config) {
		return unitDirs{}, report.New(report.Usage, "set HOME, or XDG_CONFIG_HOME to an absolute path", "find the directory of units: %q is not absolute", config)
	}
	return unitDirs{false, filepath.Join(config, "systemd/user"), filepath.Join(config, "podrun/pods")}, nil
}

// unitOf makes the unit of a manifest or of a .kube file. name is the user's, or "".
func (f *front) unitOf(dirs unitDirs, file, name string) (*unit, error) {
	if file == "-" && name == "" {
		return nil, report.New(report.Usage, "--name NAME says it", "a unit of standard input needs a name")
	}
	path := file
	if file != "-" {
		var err error
		if path, err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("find %s: %w", file, err)
		}
		if strings.ContainsFunc(path, unicode.IsControl) {
			return nil, report.New(report.Usage, "rename the file", "a unit cannot name the file %q", path)
		}
	}
	u := &unit{service: systemd.Service{System: dirs.system, Source: path}}
	var err error
	if u.service.Program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find podrun's own program: %w", err)
	}
	if filepath.Ext(path) == ".kube" {
		if name != "" {
			return nil, usageErrorf("systemd install", "--name is not for .kube files: ServiceName= in the file says it")
		}
		return u, f.kubeUnit(u, path)
	}
	return u, f.manifestUnit(u, dirs, file, path, name)
}

func (f *front) manifestUnit(u *unit, dirs unitDirs, file, path, name string) error {
	text, err := f.read(file)
	if err != nil {
		return err
	}
	docs, err := load([]source{{name: shown(file), data: text}})
	if err != nil {
		return err
	}
	f.warnOfNamespace(docs)
	if err := oneSort(docs); err != nil {
		return err
	}
	pods := append(docs.pods, samples(docs.workloads)...)
	if len(pods) == 0 {
		return report.New(report.Usage, "", "%s has no pod", shown(file))
	}
	if name == "" {
		name = unitName(pods, path)
	}
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return report.New(report.Usage, "--name NAME says another", "%q cannot be the unit's name: %s", name, why[0])
	}
	u.name, u.enable = "podrun@"+name+".service", true
	u.service.Name = name
	u.describe(pods)
	u.ofWorkloads(docs.workloads)
	u.service.Manifest = filepath.Join(dirs.manifests, name+".yaml")
	u.service.Files = []string{u.service.Manifest}
	u.manifest = text
	return nil
}

// warnOfNamespace reports that a unit does not have the namespace of the environment.
func (f *front) warnOfNamespace(docs documents) {
	for _, o := range slices.Concat(docs.pods, docs.workloads, docs.stored) {
		if f.namespace != remote.DefaultNamespace && o.Value.GetNamespace() == remote.DefaultNamespace {
			fmt.Fprintf(f.err, "podrun: warning: the unit runs %s %s in the namespace default: units do not have %s; metadata.namespace in the manifest names another\n",
				strings.ToLower(o.Kind), report.Escape(o.Name()), remote.NamespaceEnv)
			return
		}
	}
}

// unitName is the pod's name, or for several pods the file's.
func unitName(pods []manifest.Object, path string) string {
	if len(pods) == 1 {
		p := pods[0].Pod
		if p.Namespace == remote.DefaultNamespace {
			return p.Name
		}
		return p.Namespace + "-" + p.Name
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// describe tells systemd of the pods what it must know.
func (u *unit) describe(pods []manifest.Object) {
	var names []string
	for i := range pods {
		p := pods[i].Pod
		names = append(names, p.Name)
		if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
			u.service.Grace = max(u.service.Grace, time.Duration(*g)*time.Second)
		}
		if p.Spec.RestartPolicy == "Always" {
			u.service.RestartOnFailure = true
		}
	}
	kind := "Pod "
	if len(names) > 1 {
		kind = "Pods "
	}
	u.service.Description = kind + strings.Join(names, ", ")
}

func (f *front) kubeUnit(u *unit, path string) error {
	files, err := kubeFiles(path)
	if err != nil {
		return unreadable(path, err)
	}
	kube, err := systemd.ParseKube(path, f.getenv("HOME"), files)
	if err != nil {
		return report.New(report.Usage, "podman-systemd.unit(5) has the keys of .kube files", "podrun cannot run %s\n%w", path, err)
	}
	if strings.ContainsAny(kube.Service, "/@ ") || kube.Service == "" {
		return report.New(report.Usage, "for templates: podrun systemd show --template", "%q cannot be the unit's name", kube.Service)
	}
	sources, err := f.readAll(kube.Yaml)
	if err != nil {
		return err
	}
	for i := range sources { // the unit reads them in an environment of its own
		sources[i].namespace, sources[i].only = "", false
	}
	docs, err := load(sources)
	if err != nil {
		return err
	}
	f.warnOfNamespace(docs)
	u.name, u.enable = kube.Service+".service", len(kube.Extra["Install"]) > 0
	u.service.Name, u.service.Extra = kube.Service, kube.Extra
	u.service.System = u.service.System && kube.NeedsNetwork
	u.service.Args = []string{"--exit-code-from", kube.ExitFrom}
	if kube.Network != "" {
		u.service.Args = append(u.service.Args, "--network", kube.Network)
	}
	if kube.Quiet {
		u.service.Args = append(u.service.Args, "--quiet")
	}
	u.service.Files = kube.Yaml
	if err := oneSort(docs); err != nil {
		return err
	}
	u.describe(append(docs.pods, samples(docs.workloads)...))
	u.ofWorkloads(docs.workloads)
	u.service.RestartOnFailure = false // [Service] Restart= says it
	return nil
}

// kubeFiles reads a .kube file and its drop-ins, in the order of systemd.unit(5): one
// of a name hides those of less specific directories.
func kubeFiles(path string) ([]systemd.KubeFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := []systemd.KubeFile{{Name: path, Text: string(text)}}
	stem := strings.TrimSuffix(filepath.Base(path), ".kube")
	dirs := []string{"kube.d"}
	for i, r := range stem {
		if r == '-' && i+1 < len(stem) {
			dirs = append(dirs, stem[:i+1]+".kube.d")
		}
	}
	dirs = append(dirs, stem+".kube.d")
	byName := map[string]string{}
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(filepath.Dir(path), dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".conf" {
				continue
			}
			if byName[e.Name()] == "" {
				names = append(names, e.Name())
			}
			byName[e.Name()] = filepath.Join(filepath.Dir(path), dir, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(byName[name])
		if err != nil {
			return nil, err
		}
		files = append(files, systemd.KubeFile{Name: byName[name], Text: string(text)})
	}
	return files, nil
}
