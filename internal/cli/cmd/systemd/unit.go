package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/quadlet"
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

// unitOf makes the unit of a manifest or of a file of Quadlet. name is the user's choice, or "".
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
	if quadlet.IsFile(path) {
		if name != "" {
			return nil, cmdutil.UsageErrorf("systemd install", "--name cannot be used with files of Quadlet: set ServiceName= in the file")
		}
		set, err := quadletSet(env, []string{filepath.Dir(path)}, filepath.Base(path))
		if err != nil {
			return nil, resource.UnreadableError(path, err)
		}
		return u, quadletUnit(env, u, dirs, path, set)
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
