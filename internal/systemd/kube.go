package systemd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Kube is the content of a .kube file of Quadlet as far as podrun supports it.
type Kube struct {
	Yaml         []string // the manifests, absolute paths
	Service      string   // the unit's name without .service
	ExitFrom     string   // --exit-code-from: all, any, none or ""
	Network      string   // --network: host, none or ""
	Quiet        bool     // the containers' output does not go to the journal
	NeedsNetwork bool     // the system's units wait for the network
	Extra        map[string][]string
}

// KubeFile is the text of a .kube file, or of a drop-in of it.
type KubeFile struct{ Name, Text string }

// ParseKube reads a .kube file with its drop-ins as podman-systemd.unit(5) describes it. path is
// the file's absolute path, home the user's directory. The error names every key that podrun does
// not support, with what to do instead.
func ParseKube(path, home string, files []KubeFile) (*Kube, error) {
	var q quadletFile
	for _, f := range files {
		if err := q.parse(f.Name, f.Text); err != nil {
			return nil, err
		}
	}
	p := &kubeParser{q: &q, path: path, home: home}
	p.kube.Service = strings.TrimSuffix(filepath.Base(path), ".kube")
	p.keys()
	p.kubeSection()
	p.passSections()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &p.kube, nil
}

type kubeParser struct {
	q          *quadletFile
	path, home string
	kube       Kube
	errs       []error
}

func (p *kubeParser) fail(a assignment, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", a.where, a.key, fmt.Sprintf(format, args...)))
}

// refusedKeys are the keys of [Kube] that podrun does not support, with what to do instead. With
// those that kubeSection reads they are all keys of podman-systemd.unit(5).
var refusedKeys = map[string]string{
	"AutoUpdate":           "podrun does not update images by itself; imagePullPolicy: Always pulls at each start: systemctl restart the unit from a timer",
	"ContainersConfModule": "podrun does not read containers.conf; remove it",
	"GlobalArgs":           "these are options of podman; remove it",
	"LogOpt":               "podrun has no log options; remove it",
	"PodmanArgs":           "these are options of podman; remove it",
	"PublishPort":          "the manifest says which ports the host opens: give the container's port a hostPort, and a hostIP for one address",
	"RemapGid":             "the user namespace of podrun's pods is fixed; remove it",
	"RemapUid":             "the user namespace of podrun's pods is fixed; remove it",
	"RemapUidSize":         "the user namespace of podrun's pods is fixed; remove it",
	"RemapUsers":           "the user namespace of podrun's pods is fixed; remove it",
	"UserNS":               "the user namespace of podrun's pods is fixed (uid 0 is the user, the others are subordinate ids); remove it",
}

var knownKeys = []string{"ConfigMap", "ExitCodePropagation", "KubeDownForce", "LogDriver", "Network", "ServiceName", "SetWorkingDirectory", "Yaml"}

func (p *kubeParser) keys() {
	if !slices.Contains(p.q.names, "Kube") {
		p.errs = append(p.errs, fmt.Errorf("%s: there is no section [Kube]: podrun reads Quadlet's .kube files only", p.path))
	}
	for _, a := range p.q.sections["Kube"] {
		why, refused := refusedKeys[a.key]
		switch {
		case refused && a.value != "":
			p.fail(a, "%s", why)
		case !refused && !slices.Contains(knownKeys, a.key):
			p.fail(a, "Quadlet has no such key of [Kube]")
		}
	}
	for _, a := range p.q.sections["Quadlet"] {
		on, ok := parseBool(a.value)
		if a.key != "DefaultDependencies" || !ok {
			p.fail(a, "[Quadlet] has DefaultDependencies=yes or no only")
		}
		p.kube.NeedsNetwork = on
	}
	if p.q.last("Quadlet", "DefaultDependencies") == "" {
		p.kube.NeedsNetwork = true
	}
}

func (p *kubeParser) kubeSection() {
	// A file of ConfigMaps is a manifest like any other.
	for _, key := range []string{"Yaml", "ConfigMap"} {
		for _, a := range p.q.all("Kube", key) {
			if path, err := p.resolve(trimQuotes(a.value)); err != nil {
				p.fail(a, "%v", err)
			} else {
				p.kube.Yaml = append(p.kube.Yaml, path)
			}
		}
	}
	if len(p.q.all("Kube", "Yaml")) == 0 {
		p.errs = append(p.errs, fmt.Errorf("%s: [Kube] has no Yaml=, the manifest to run", p.path))
	}
	if name := p.q.last("Kube", "ServiceName"); name != "" {
		p.kube.Service = strings.TrimSuffix(name, ".service")
	}
	for _, a := range p.q.all("Kube", "ExitCodePropagation") {
		if !slices.Contains([]string{"all", "any", "none"}, a.value) {
			p.fail(a, "use all, any or none")
		}
	}
	// Quadlet's default is "none": a failed container does not fail the unit.
	p.kube.ExitFrom = p.q.last("Kube", "ExitCodePropagation")
	if p.kube.ExitFrom == "" {
		p.kube.ExitFrom = "none"
	}
	for _, a := range p.q.all("Kube", "KubeDownForce") { // removing the pod removes its data in any case
		if _, ok := parseBool(a.value); !ok {
			p.fail(a, "use yes or no")
		}
	}
	for _, a := range p.q.all("Kube", "Network") {
		switch name, _, options := strings.Cut(a.value, ":"); {
		case options:
			p.fail(a, "podrun has no network options; write %s=%s", a.key, name)
		case slices.Contains([]string{"host", "none"}, name):
			p.kube.Network = name
		default:
			p.fail(a, "use host or none; without it the pod reaches other networks and the user's other pods, also by name")
		}
	}
	for _, a := range p.q.all("Kube", "LogDriver") {
		switch a.value {
		case "journald", "passthrough":
			p.kube.Quiet = false
		case "k8s-file", "json-file", "none":
			p.kube.Quiet = true
		default:
			p.fail(a, "use journald or passthrough (the unit's journal), or k8s-file or none (only podrun logs)")
		}
	}
}

// resolve makes a path absolute, from the directory of the .kube file. Of systemd's specifiers it
// supports the user's home.
func (p *kubeParser) resolve(path string) (string, error) {
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return "", errors.New("podrun reads files, not URLs: download it first")
	}
	if rest, ok := strings.CutPrefix(path, "%h/"); ok {
		path = filepath.Join(p.home, rest)
	}
	plain := strings.ReplaceAll(path, "%%", "")
	if strings.Contains(plain, "%") {
		return "", errors.New("write the path out: podrun checks the manifest now and supports only the specifier %h/ at the beginning")
	}
	path = strings.ReplaceAll(path, "%%", "%")
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.path), path)
	}
	return filepath.Clean(path), nil
}

// ownService are the keys of [Service] that podrun sets itself.
var ownService = map[string]string{
	"ExecStart":    "the unit starts podrun up; write a unit of your own for other commands",
	"ExecStop":     "podrun stops the pod by itself; use ExecStopPost, or a preStop hook of a container",
	"ExecReload":   "podrun sets it: a reload applies the current manifest",
	"NotifyAccess": "podrun sets it",
	"PIDFile":      "podrun reports its process to systemd",
	"BusName":      "podrun has no bus name",
	"Delegate":     "the pod has a delegated scope beside the unit; remove it",
}

// dependencies are the keys of [Unit] that name other units.
var dependencies = []string{"Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Upholds", "Conflicts", "Before", "After"}

// passSections copies the sections for systemd.
func (p *kubeParser) passSections() {
	p.kube.Extra = map[string][]string{"Install": nil}
	for _, section := range p.q.names {
		if section == "Kube" || section == "Quadlet" {
			continue
		}
		for _, a := range p.q.sections[section] {
			switch section {
			case "Unit":
				a = p.dependency(a)
			case "Service":
				p.service(a)
			case "Install":
			case ownSection:
				p.fail(a, "podrun writes section [%s] itself; remove it", section)
			default:
				if !strings.HasPrefix(section, "X-") {
					p.fail(a, "podrun does not support section [%s] in a .kube file", section)
				}
			}
			p.kube.Extra[section] = append(p.kube.Extra[section], a.String())
		}
	}
	for _, a := range p.q.all("Kube", "SetWorkingDirectory") {
		switch {
		case a.value == "unit":
			p.kube.Extra["Service"] = append(p.kube.Extra["Service"], "WorkingDirectory="+escapeSpecifiers(filepath.Dir(p.path)))
		case a.value == "yaml" && len(p.kube.Yaml) > 0:
			p.kube.Extra["Service"] = append(p.kube.Extra["Service"], "WorkingDirectory="+escapeSpecifiers(filepath.Dir(p.kube.Yaml[0])))
		case a.value != "yaml":
			p.fail(a, "use yaml or unit")
		}
	}
}

func (p *kubeParser) service(a assignment) {
	if why, ok := ownService[a.key]; ok {
		p.fail(a, "%s", why)
	}
	if a.key == "Type" && a.value != "notify" {
		p.fail(a, "podrun's units are Type=notify: a pod of restartPolicy Never ends its unit; remove it")
	}
}

// dependency translates the names of other .kube files.
func (p *kubeParser) dependency(a assignment) assignment {
	for _, key := range dependencies {
		if a.key != key {
			continue
		}
		units := strings.Fields(a.value)
		for i, u := range units {
			switch filepath.Ext(u) {
			case ".kube":
				units[i] = strings.TrimSuffix(u, ".kube") + ".service"
			case ".container", ".pod", ".volume", ".network", ".image", ".build":
				p.fail(a, "%s is a unit of podman: use the name of its service", u)
			}
		}
		a.value = strings.Join(units, " ")
	}
	return a
}
