package systemd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kube is the content of a .kube file of Quadlet as far as podrun supports it.
type Kube struct {
	Yaml         []string // the manifests, absolute paths
	Service      string   // the unit's name without .service
	ExitFrom     string   // --exit-code-from: all, any, none or ""
	Quiet        bool     // the containers' output does not go to the journal
	NeedsNetwork bool     // the system's units wait for the network
	OneShot      bool     // Type=oneshot
	Extra        map[string][]string

	// Network is the value of --network, host, none or "", and LogMaxSize the value of --log-max-size.
	Network, LogMaxSize string
	Publish, AutoUpdate []Assignment // --publish and --auto-update
	PodsOnly            []Assignment // the keys that set something in Pods
}

// PodOptions returns the options of podrun up that set something in Pods.
func (k *Kube) PodOptions() (options []string) {
	add := func(option, value string) {
		if value != "" {
			options = append(options, option, value)
		}
	}
	add("--network", k.Network)
	add("--log-max-size", k.LogMaxSize)
	for _, a := range k.Publish {
		add("--publish", a.Value)
	}
	for _, a := range k.AutoUpdate {
		add("--auto-update", a.Value)
	}
	return options
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

func (p *kubeParser) fail(a Assignment, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", a.Where, a.Key, fmt.Sprintf(format, args...)))
}

func (p *kubeParser) keys() {
	if !slices.Contains(p.q.names, "Kube") {
		p.errs = append(p.errs, fmt.Errorf("%s: there is no section [Kube]: podrun reads Quadlet's .kube files only", p.path))
	}
	for _, a := range p.q.sections["Kube"] {
		switch k, known := findKey("Kube", a.Key); {
		case !known:
			p.fail(a, "Quadlet has no such key of [Kube]")
		case k.support == keyRefused && a.Value != "":
			p.fail(a, "%s", k.note)
		}
	}
	for _, a := range p.q.sections["Quadlet"] {
		on, ok := parseBool(a.Value)
		if a.Key != "DefaultDependencies" || !ok {
			p.fail(a, "[Quadlet] has DefaultDependencies=yes or no only")
		}
		p.kube.NeedsNetwork = on
	}
	if p.q.last("Quadlet", "DefaultDependencies") == "" {
		p.kube.NeedsNetwork = true
	}
}

func (p *kubeParser) kubeSection() {
	p.yaml()
	p.podKeys()
	if name := p.q.last("Kube", "ServiceName"); name != "" {
		p.kube.Service = strings.TrimSuffix(name, ".service")
	}
	for _, a := range p.q.all("Kube", "ExitCodePropagation") {
		if !slices.Contains([]string{"all", "any", "none"}, a.Value) {
			p.fail(a, "use all, any or none")
		}
	}
	// Quadlet's default is "none": a failed container does not fail the unit.
	p.kube.ExitFrom = p.q.last("Kube", "ExitCodePropagation")
	if p.kube.ExitFrom == "" {
		p.kube.ExitFrom = "none"
	}
	for _, a := range p.q.all("Kube", "KubeDownForce") { // removing the pod removes its data in any case
		if _, ok := parseBool(a.Value); !ok {
			p.fail(a, "use yes or no")
		}
	}
	for _, a := range p.q.all("Kube", "LogDriver") {
		switch a.Value {
		case "journald", "passthrough":
			p.kube.Quiet = false
		case "k8s-file", "json-file", "none":
			p.kube.Quiet = true
		default:
			p.fail(a, "use journald or passthrough (the unit's journal), or k8s-file or none (only podrun logs)")
		}
	}
}

// yaml reads the manifests.
func (p *kubeParser) yaml() {
	// A file of ConfigMaps is a manifest like any other.
	for _, key := range []string{"Yaml", "ConfigMap"} {
		for _, a := range p.q.all("Kube", key) {
			if path, err := p.resolve(trimQuotes(a.Value)); err != nil {
				p.fail(a, "%v", err)
			} else {
				p.kube.Yaml = append(p.kube.Yaml, path)
			}
		}
	}
	if len(p.q.all("Kube", "Yaml")) == 0 {
		p.errs = append(p.errs, fmt.Errorf("%s: [Kube] has no Yaml=, the manifest to run", p.path))
	}
}

// podKeys reads the keys that set something in Pods.
func (p *kubeParser) podKeys() {
	networks := map[string]bool{}
	for _, a := range p.q.all("Kube", "Network") {
		mode := p.network(a)
		if networks[mode] = true; len(networks) > 1 {
			p.fail(a, "a pod has one network")
		}
		if p.kube.Network = mode; mode != "" {
			p.kube.PodsOnly = append(p.kube.PodsOnly, a)
		}
	}
	for _, a := range p.q.all("Kube", "LogOpt") {
		for word := range strings.FieldsSeq(a.Value) {
			option, value, _ := strings.Cut(trimQuotes(word), "=")
			size, ok := logSize(value)
			switch {
			case option == "tag":
				p.fail(a, "write SyslogIdentifier= in [Service] instead of the option tag")
			case option != "max-size":
				p.fail(a, "podrun has the option max-size only, not %q; the logs are in the pod's directory, see podrun logs", option)
			case !ok:
				p.fail(a, "max-size is a size of at least 4096 bytes, as in 10mb")
			}
			p.kube.LogMaxSize = size
		}
		p.kube.PodsOnly = append(p.kube.PodsOnly, a)
	}
	p.kube.Publish = p.values("PublishPort")
	p.kube.AutoUpdate = p.values("AutoUpdate")
	p.kube.PodsOnly = slices.Concat(p.kube.PodsOnly, p.kube.Publish, p.kube.AutoUpdate)
}

// values returns the values of a key that may occur several times. The caller of ParseKube checks them.
func (p *kubeParser) values(key string) (list []Assignment) {
	for _, a := range p.q.all("Kube", key) {
		if a.Value != "" {
			a.Value = trimQuotes(a.Value)
			list = append(list, a)
		}
	}
	return list
}

// network returns podrun's mode for a network of podman; "" is podrun's own network.
func (p *kubeParser) network(a Assignment) string {
	name, _, options := strings.Cut(a.Value, ":")
	isPodNetwork := slices.Contains([]string{"", "bridge", "pasta", "private", "slirp4netns"}, name)
	switch {
	case name == "ns" || name == "container" || !isPodNetwork && name != "host" && name != "none":
		p.fail(a, "podrun has no network %q: use host or none; without it the pod reaches other networks and the user's other pods, also by name", a.Value)
	case options:
		p.fail(a, "podrun has no network options; write %s=%s", a.Key, name)
	case !isPodNetwork:
		return name
	}
	return ""
}

// logSize converts a size of podman, whose units are powers of 1000, to a number of bytes.
func logSize(text string) (string, bool) {
	number := strings.TrimRight(text, "kmgbKMGB")
	factor, known := map[string]uint64{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}[strings.ToLower(text[len(number):])]
	n, err := strconv.ParseUint(number, 10, 32)
	return strconv.FormatUint(n*factor, 10), known && err == nil && n*factor >= 4096
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
	p.workingDirectory()
	p.kube.OneShot = p.q.last("Service", "Type") == "oneshot"
	for _, a := range p.q.all("Service", "WatchdogSec") {
		if p.kube.OneShot {
			p.fail(a, "a unit of Type=oneshot has no watchdog; remove it")
		}
	}
}

func (p *kubeParser) workingDirectory() {
	for _, a := range p.q.all("Kube", "SetWorkingDirectory") {
		dir := filepath.Dir(p.path)
		switch {
		case a.Value != "yaml" && a.Value != "unit":
			p.fail(a, "use yaml or unit")
		case a.Value == "yaml" && len(p.q.all("Kube", "Yaml")) > 1:
			p.fail(a, "yaml requires a single Yaml=")
		case a.Value == "yaml" && len(p.kube.Yaml) > 0:
			dir = filepath.Dir(p.kube.Yaml[0])
		}
		if p.q.last("Service", "WorkingDirectory") == "" {
			p.kube.Extra["Service"] = append(p.kube.Extra["Service"], "WorkingDirectory="+escapeSpecifiers(dir))
		}
	}
}

func (p *kubeParser) service(a Assignment) {
	if k, ok := findKey("Service", a.Key); ok && k.support == keyRefused {
		p.fail(a, "%s", k.note)
	}
	switch {
	case a.Key == "Type" && a.Value != "notify" && a.Value != "oneshot":
		p.fail(a, "use notify, which is the default, or oneshot")
	case a.Key == "KillMode" && a.Value != "mixed" && a.Value != "control-group":
		p.fail(a, "use mixed, which is the default, or control-group")
	}
}

// dependency translates the names of other .kube files.
func (p *kubeParser) dependency(a Assignment) Assignment {
	for _, key := range dependencies {
		if a.Key != key {
			continue
		}
		units := strings.Fields(a.Value)
		for i, u := range units {
			switch filepath.Ext(u) {
			case ".kube":
				units[i] = strings.TrimSuffix(u, ".kube") + ".service"
			case ".container", ".pod", ".volume", ".network", ".image", ".build", ".artifact":
				p.fail(a, "%s is a unit of podman: use the name of its service", u)
			}
		}
		a.Value = strings.Join(units, " ")
	}
	return a
}
