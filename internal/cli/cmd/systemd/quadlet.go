package systemd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/unit"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/quadlet"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// quadletUnit makes the unit of a file of Quadlet in a set. dirs are where the manifest of a .container or .pod file goes.
func quadletUnit(env *cmdutil.Env, u *unitFile, dirs systemd.UnitDirs, path string, set *quadlet.Set) error {
	q, err := set.Unit(filepath.Base(path))
	if err != nil {
		return report.New(report.Usage, "podman-systemd.unit(5) describes the keys", "podrun cannot run %s\n%w", path, err)
	}
	if strings.ContainsAny(q.Service, "/ ") || q.Service == "" || strings.HasSuffix(q.Service, "@") {
		return report.New(report.Usage, "for templates: podrun systemd show --template", "%q cannot be the unit's name", q.Service)
	}
	var texts []resource.Source
	if len(q.Yaml) > 0 {
		texts, err = resource.ReadFiles(env, q.Yaml)
	} else if u.manifest, err = q.Manifest(); err == nil {
		texts = []resource.Source{{Name: path, Data: u.manifest}}
		u.service.Manifest = filepath.Join(dirs.Manifests, filepath.Base(path)+".yaml")
		q.Yaml = []string{u.service.Manifest}
	}
	if err != nil {
		return err
	}
	for i := range texts { // the unit reads them in another environment
		texts[i].Namespace, texts[i].RejectOtherNamespaces = "", false
	}
	docs, err := resource.Load(texts)
	if err == nil {
		err = errors.Join(checkKube(q, docs), resource.RefuseMixed(docs))
	}
	if err != nil {
		return err
	}
	u.docs = docs
	warnOfNamespace(env, docs)
	u.useQuadlet(q)
	return nil
}

// useQuadlet sets the properties of the unit that a file of Quadlet has.
func (u *unitFile) useQuadlet(q *quadlet.Unit) {
	u.name, u.enable = q.Service+".service", len(q.Extra["Install"]) > 0
	s := &u.service
	s.Name, s.Extra, s.Files, s.Reload = q.Service, q.Extra, q.Yaml, q.Reload
	s.System = s.System && q.NeedsNetwork
	s.Args = []string{"--exit-code-from", q.ExitFrom}
	s.PodOptions, s.OneShot = q.PodOptions(), q.OneShot
	if q.Quiet {
		s.Args = append(s.Args, "--quiet")
	}
	if q.WhenRunning && !q.OneShot {
		s.Args = append(s.Args, "--sdnotify", string(unit.ActiveRunning))
	}
	if s.Description = q.Service; len(u.docs.Pods)+len(u.docs.Workloads) > 0 {
		u.usePods(append(u.docs.Pods, resource.SamplePods(u.docs.Workloads)...))
	}
	u.useWorkloads(u.docs.Workloads)
	s.RestartOnFailure = false // Restart= in [Service] decides
}

// checkKube checks the keys of a .kube file whose meaning depends on its manifests.
func checkKube(q *quadlet.Unit, docs resource.Documents) error {
	var errs []error
	fail := func(a quadlet.Assignment, err error) {
		errs = append(errs, report.New(report.Usage, "", "%s: %s: %w", a.Where, a.Key, err))
	}
	for _, a := range q.PodsOnly {
		if len(docs.Workloads) > 0 {
			w := &docs.Workloads[0]
			fail(a, fmt.Errorf("it applies to Pods only, and %s is a %s: set it in the template of the manifest", resource.Location(w), w.Kind))
		}
	}
	for _, a := range q.Publish {
		port, err := manifest.ParsePublishedPort(a.Value)
		if err == nil && len(docs.Workloads) == 0 {
			err = manifest.Publish(docs.Pods, []podutil.PublishedPort{port})
		}
		if err != nil {
			fail(a, err)
		}
	}
	for _, a := range q.AutoUpdate {
		if err := manifest.SetAutoUpdate(docs.Pods, []string{a.Value}); err != nil {
			fail(a, err)
		}
	}
	return errors.Join(append(errs, checkType(q, docs))...)
}

// checkType checks that a unit of Type=oneshot ends, and that any other has pods.
func checkType(q *quadlet.Unit, docs resource.Documents) error {
	if !q.OneShot {
		if len(docs.Pods)+len(docs.Workloads) > 0 {
			return nil
		}
		return report.New(report.Usage, "", "%s has no pod: write Type=oneshot and RemainAfterExit=yes in [Service]", q.Yaml[0])
	}
	for i := range docs.Pods {
		if p := docs.Pods[i].Pod; p.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			return report.New(report.Usage, "set restartPolicy: Never or OnFailure, or remove Type=oneshot", "Type=oneshot: pod %s does not end: its restartPolicy is Always", p.Name)
		}
	}
	for i := range docs.Workloads {
		if w := &docs.Workloads[i]; w.Kind != string(pod.KindJob) {
			return report.New(report.Usage, "remove Type=oneshot", "Type=oneshot: the %s %s does not end", w.Kind, w.Name())
		}
	}
	return nil
}

// quadletSet reads the files of Quadlet in directories, with their drop-ins. A file hides files of the same name in
// later directories. wanted is one of them, or an instance of a template; "" is none.
func quadletSet(env *cmdutil.Env, dirs []string, wanted string) (*quadlet.Set, error) {
	set := &quadlet.Set{Files: map[string][]quadlet.File{}, Host: env.OptionHost(), Specifiers: specifiers(env)}
	paths := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name := e.Name(); quadlet.IsFile(name) && paths[name] == "" {
				paths[name] = filepath.Join(dir, name)
			}
		}
	}
	if prefix, rest, ok := strings.Cut(wanted, "@"); ok && paths[wanted] == "" {
		if template := paths[prefix+"@"+filepath.Ext(rest)]; template != "" {
			paths[wanted] = template
		}
	}
	if wanted != "" && paths[wanted] == "" {
		return nil, fs.ErrNotExist
	}
	for name, path := range paths {
		files, err := quadletFile(path, name, dirs)
		if err != nil && name == wanted {
			return nil, err
		}
		if err == nil {
			set.Files[name] = files
		}
	}
	return set, nil
}

// quadletFile reads a file and its drop-ins, in the order of systemd.unit(5): a drop-in hides drop-ins of the same
// name in less specific directories.
func quadletFile(path, name string, dirs []string) ([]quadlet.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := []quadlet.File{{Name: path, Text: string(text)}}
	byName := map[string]string{}
	for _, dropIns := range dropInDirs(name) {
		for _, dir := range slices.Backward(dirs) { // the first one hides the others
			entries, err := os.ReadDir(filepath.Join(dir, dropIns))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if filepath.Ext(e.Name()) == ".conf" {
					byName[e.Name()] = filepath.Join(dir, dropIns, e.Name())
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		text, err := os.ReadFile(byName[name])
		if err != nil {
			return nil, err
		}
		files = append(files, quadlet.File{Name: byName[name], Text: string(text)})
	}
	return files, nil
}

// dropInDirs returns the names of a file's directories of drop-ins, the least specific one first.
func dropInDirs(name string) []string {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	list := []string{ext[1:] + ".d"}
	prefix, _, isInstance := strings.Cut(stem, "@")
	for i, r := range prefix {
		if r == '-' && i+1 < len(prefix) {
			list = append(list, prefix[:i+1]+ext+".d")
		}
	}
	if isInstance {
		list = append(list, prefix+"@"+ext+".d")
	}
	if last := name + ".d"; !slices.Contains(list, last) {
		list = append(list, last)
	}
	return list
}

// specifiers returns systemd's specifiers of the user and the machine (systemd.unit(5), SPECIFIERS).
func specifiers(env *cmdutil.Env) map[byte]string {
	home := env.Getenv("HOME")
	under := func(name, otherwise string) string { return cmp.Or(env.Getenv(name), filepath.Join(home, otherwise)) }
	list := map[byte]string{
		'h': home, 'u': cmp.Or(env.Getenv("USER"), env.Getenv("LOGNAME")), 'U': strconv.Itoa(os.Getuid()), 'G': strconv.Itoa(os.Getgid()),
		'T': cmp.Or(env.Getenv("TMPDIR"), "/tmp"), 'V': cmp.Or(env.Getenv("TMPDIR"), "/var/tmp"),
		't': env.Getenv("XDG_RUNTIME_DIR"), 'E': under("XDG_CONFIG_HOME", ".config"), 'C': under("XDG_CACHE_HOME", ".cache"), 'S': under("XDG_STATE_HOME", ".local/state"),
	}
	if os.Geteuid() == 0 {
		list['t'], list['E'], list['C'], list['S'], list['h'], list['u'] = "/run", "/etc", "/var/cache", "/var/lib", "/root", "root"
	}
	if name, err := os.Hostname(); err == nil {
		list['H'] = name
	}
	maps.DeleteFunc(list, func(_ byte, value string) bool { return value == "" })
	return list
}
