package systemd

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// unitFile is a unit that podrun generates from a file.
type unitFile struct {
	name     string // podrun@web.service
	service  systemd.Service
	docs     resource.Documents // what it runs
	manifest []byte             // its text, to be copied to service.Manifest; nil: it stays in its place
	text     []byte             // of the unit file; nil: the text of service
	enable   bool
	replaces string // the file, now gone, that an existing unit of the name was made from; or ""
}

// short returns the unit's name as a user gives it to systemctl.
func (u *unitFile) short() string { return strings.TrimSuffix(u.name, ".service") }

func unitScopeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "user", Usage: "a unit of the user's systemd (the default, except for root)"},
		&cli.BoolFlag{Name: "system", Usage: "a unit of the system's systemd; for root only"},
	}
}

// unitOptions are the options of all commands on units.
type unitOptions struct {
	env          *cmdutil.Env
	command      string // install
	words        []string
	user, system bool
	dirs         systemd.UnitDirs
}

func (o *unitOptions) Complete(c *cli.Context) error {
	o.command, o.words, o.user, o.system = c.Command.Name, c.Args().Slice(), c.Bool("user"), c.Bool("system")
	return nil
}

// Validate chooses the directories of the user's or the system's units.
func (o *unitOptions) Validate() (err error) {
	root := os.Geteuid() == 0
	switch {
	case o.user && o.system:
		return cmdutil.UsageErrorf("systemd "+o.command, "--user and --system are mutually exclusive")
	case o.system && !root:
		return report.New(report.Usage, "sudo podrun systemd "+o.command+" --system …, or omit --system: with lingering, a unit of your user starts at boot, too",
			"--system requires root")
	case o.user && root:
		return report.New(report.Usage, "omit --user, or run the command as the user who owns the pods", "--user cannot be used as root")
	}
	o.dirs, err = systemd.OwnUnitDirs(o.env.Getenv)
	return err
}

// unitOf makes the unit of a manifest or of a .kube file. name is the user's choice, or "".
func unitOf(env *cmdutil.Env, dirs systemd.UnitDirs, file, name string) (*unitFile, error) {
	if file == "-" && name == "" {
		return nil, report.New(report.Usage, "--name NAME sets it", "a unit from standard input requires a name")
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
	u := &unitFile{service: systemd.Service{System: dirs.System, Source: path}}
	var err error
	if u.service.Program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find podrun's own program: %w", err)
	}
	if filepath.Ext(path) == ".kube" {
		if name != "" {
			return nil, cmdutil.UsageErrorf("systemd install", "--name cannot be used with .kube files: set ServiceName= in the file")
		}
		return u, kubeUnit(env, u, path)
	}
	return u, manifestUnit(env, u, dirs, file, path, name)
}

func manifestUnit(env *cmdutil.Env, u *unitFile, dirs systemd.UnitDirs, file, path, name string) error {
	sources, err := resource.ReadFiles(env, []string{file})
	if err != nil {
		return err
	}
	if len(sources) != 1 {
		return cmdutil.UsageErrorf("systemd install", "systemd install requires one file: %s is a directory", file)
	}
	compose.Warn(env, sources[0].Warnings)
	docs, err := resource.Load([]resource.Source{{Name: sources[0].Name, Data: sources[0].Data}})
	if err != nil {
		return err
	}
	u.docs = docs
	warnOfNamespace(env, docs)
	if err := resource.RefuseMixed(docs); err != nil {
		return err
	}
	pods := append(docs.Pods, resource.SamplePods(docs.Workloads)...)
	if len(pods) == 0 {
		return report.New(report.Usage, "", "%s has no pod", resource.DisplayName(file))
	}
	if name == "" {
		name = unitName(pods, path)
	}
	if reason := validation.IsDNS1123Subdomain(name); len(reason) > 0 {
		return report.New(report.Usage, "--name NAME sets another", "%q cannot be the unit's name: %s", name, reason[0])
	}
	u.name, u.enable = "podrun@"+name+".service", true
	u.service.Name = name
	u.usePods(pods)
	u.useWorkloads(docs.Workloads)
	u.service.Manifest = filepath.Join(dirs.Manifests, name+".yaml")
	u.service.Files = []string{u.service.Manifest}
	u.manifest = sources[0].Data
	return nil
}

// warnOfNamespace warns that a unit does not use the namespace of the environment.
func warnOfNamespace(env *cmdutil.Env, docs resource.Documents) {
	for _, o := range slices.Concat(docs.Pods, docs.Workloads, docs.Stored) {
		if env.Namespace != podclient.DefaultNamespace && o.Value.GetNamespace() == podclient.DefaultNamespace {
			fmt.Fprintf(env.ErrOut, "podrun: warning: the unit runs %s %s in the namespace default: units do not have %s; metadata.namespace in the manifest sets another\n",
				strings.ToLower(o.Kind), report.Escape(o.Name()), podclient.NamespaceEnv)
			return
		}
	}
}

// unitName returns the name of the compose project, of the only pod or, for several pods, of the file.
func unitName(pods []manifest.Object, path string) string {
	if project := pods[0].Pod.Annotations[podutil.AnnotationComposeProject]; project != "" {
		return strings.Trim(strings.ReplaceAll(project, "_", "-"), "-")
	}
	if len(pods) == 1 {
		p := pods[0].Pod
		if p.Namespace == podclient.DefaultNamespace {
			return p.Name
		}
		return p.Namespace + "-" + p.Name
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// usePods sets the properties of the unit that follow from its pods: description, grace period, restarts.
func (u *unitFile) usePods(pods []manifest.Object) {
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

func kubeUnit(env *cmdutil.Env, u *unitFile, path string) error {
	files, err := kubeFiles(path)
	if err != nil {
		return resource.UnreadableError(path, err)
	}
	kube, err := systemd.ParseKube(path, env.Getenv("HOME"), files)
	if err != nil {
		return report.New(report.Usage, "podman-systemd.unit(5) lists the keys of .kube files", "podrun cannot run %s\n%w", path, err)
	}
	if strings.ContainsAny(kube.Service, "/@ ") || kube.Service == "" {
		return report.New(report.Usage, "for templates: podrun systemd show --template", "%q cannot be the unit's name", kube.Service)
	}
	sources, err := resource.ReadFiles(env, kube.Yaml)
	if err != nil {
		return err
	}
	for i := range sources { // the unit reads them in another environment
		sources[i].Namespace, sources[i].RejectOtherNamespaces = "", false
	}
	docs, err := resource.Load(sources)
	if err == nil {
		err = checkKube(kube, docs)
	}
	if err != nil {
		return err
	}
	u.docs = docs
	warnOfNamespace(env, docs)
	u.name, u.enable = kube.Service+".service", len(kube.Extra["Install"]) > 0
	u.service.Name, u.service.Extra = kube.Service, kube.Extra
	u.service.System = u.service.System && kube.NeedsNetwork
	u.service.Args = []string{"--exit-code-from", kube.ExitFrom}
	u.service.PodOptions, u.service.OneShot = kube.PodOptions(), kube.OneShot
	if kube.Quiet {
		u.service.Args = append(u.service.Args, "--quiet")
	}
	u.service.Files = kube.Yaml
	if err := resource.RefuseMixed(docs); err != nil {
		return err
	}
	if u.service.Description = kube.Service; len(docs.Pods)+len(docs.Workloads) > 0 {
		u.usePods(append(docs.Pods, resource.SamplePods(docs.Workloads)...))
	}
	u.useWorkloads(docs.Workloads)
	u.service.RestartOnFailure = false // Restart= in [Service] decides
	return nil
}

// checkKube checks the keys of a .kube file whose meaning depends on its manifests.
func checkKube(kube *systemd.Kube, docs resource.Documents) error {
	var errs []error
	fail := func(a systemd.Assignment, err error) {
		errs = append(errs, report.New(report.Usage, "", "%s: %s: %w", a.Where, a.Key, err))
	}
	for _, a := range kube.PodsOnly {
		if len(docs.Workloads) > 0 {
			w := &docs.Workloads[0]
			fail(a, fmt.Errorf("it applies to Pods only, and %s is a %s: set it in the template of the manifest", resource.Location(w), w.Kind))
		}
	}
	for _, a := range kube.Publish {
		port, err := manifest.ParsePublishedPort(a.Value)
		if err == nil && len(docs.Workloads) == 0 {
			err = manifest.Publish(docs.Pods, []manifest.PublishedPort{port})
		}
		if err != nil {
			fail(a, err)
		}
	}
	for _, a := range kube.AutoUpdate {
		if err := manifest.SetAutoUpdate(docs.Pods, []string{a.Value}); err != nil {
			fail(a, err)
		}
	}
	return errors.Join(append(errs, checkType(kube, docs))...)
}

// checkType checks that a unit of Type=oneshot ends, and that any other has pods.
func checkType(kube *systemd.Kube, docs resource.Documents) error {
	if !kube.OneShot {
		if len(docs.Pods)+len(docs.Workloads) > 0 {
			return nil
		}
		return report.New(report.Usage, "", "%s has no pod: write Type=oneshot and RemainAfterExit=yes in [Service]", kube.Yaml[0])
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

// kubeFiles reads a .kube file and its drop-ins, in the order of systemd.unit(5): a drop-in hides drop-ins
// of the same name in less specific directories.
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

// useWorkloads sets the properties of the unit that follow from its workloads, instead of those that usePods
// has set from their sample pods. A failed Job stays failed; workloads that run forever are restarted.
func (u *unitFile) useWorkloads(workloads []manifest.Object) {
	if len(workloads) == 0 {
		return
	}
	var names []string
	u.service.RestartOnFailure = false
	for i := range workloads {
		o := &workloads[i]
		names = append(names, o.Kind+" "+o.Name())
		if o.Kind != string(pod.KindJob) {
			u.service.RestartOnFailure = true
		}
	}
	u.service.Description = strings.Join(names, ", ")
}
