// Package quadlet translates files of podman's Quadlet: a .kube file names manifests, a .container or .pod file becomes
// a manifest. Tables have podrun's support of each key of podman-systemd.unit(5).
package quadlet

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/manifest/runpod"
)

// Unit is what a file becomes: a unit of systemd, and what it runs.
type Unit struct {
	Yaml         []string // the manifests that a .kube file names, absolute paths
	Objects      []any    // what a .container or .pod file becomes: its Pod is the last one
	Service      string   // the unit's name without .service
	ExitFrom     string   // --exit-code-from: all, any, none or ""
	Quiet        bool     // the containers' output does not go to the journal
	NeedsNetwork bool     // the system's units wait for the network
	OneShot      bool     // Type=oneshot
	WhenRunning  bool     // the unit is active when its containers run; otherwise when they are ready
	Reload       []string // a command of podrun for a reload of the unit, after its manifest was applied
	Extra        map[string][]string

	// Network is the value of --network, host, none or "", and LogMaxSize the value of --log-max-size.
	Network, LogMaxSize string
	Publish, AutoUpdate []Assignment // --publish and --auto-update
	PodsOnly            []Assignment // the keys that set something in Pods
}

// Manifest returns the text of the objects.
func (u *Unit) Manifest() ([]byte, error) {
	var text []byte
	for i, o := range u.Objects {
		one, err := printers.PrintList([]any{o}, true, printers.YAML)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, "---\n"...)
		}
		text = append(text, one...)
	}
	return text, nil
}

// Set are files of Quadlet that may name each other.
type Set struct {
	Files      map[string][]File // by name, web.container: the file and its drop-ins
	Host       runpod.Host       // the machine; relative paths begin at the file
	Specifiers map[byte]string   // systemd's specifiers of the user and the machine, by their letters
}

// sections returns the sections of the kinds of files.
func sections() map[string]string {
	return map[string]string{
		".kube": "Kube", ".container": "Container", ".pod": "Pod", ".volume": "Volume", ".network": "Network",
		".image": "Image", ".build": "Build", ".artifact": "Artifact",
	}
}

// IsFile reports whether a file has the name of a file of Quadlet.
func IsFile(name string) bool { return sections()[filepath.Ext(name)] != "" }

// isUnit reports whether a file of Quadlet becomes a unit: .volume and .network files do not.
func isUnit(name string) bool {
	return slices.Contains([]string{".kube", ".container", ".pod"}, filepath.Ext(name))
}

// Unit makes the unit of a file. The error names every key that podrun does not support, with what to do instead.
func (s *Set) Unit(name string) (*Unit, error) {
	p, err := s.open(name)
	if err != nil {
		return nil, err
	}
	switch p.section {
	case "Kube":
		p.kube()
	case "Container":
		p.containerUnit()
	case "Pod":
		p.podUnit()
	default:
		return nil, fmt.Errorf("%s: it has no unit of its own: podrun uses it with the .container and .pod files that name it", p.path)
	}
	p.passSections()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &p.unit, nil
}

// InPod reports whether a file is a container of a .pod file, which has its unit.
func (s *Set) InPod(name string) bool {
	p, err := s.open(name)
	return err == nil && p.section == "Container" && p.q.last("Container", "Pod") != ""
}

// parser reads one file.
type parser struct {
	set     *Set
	q       *unitText
	path    string
	section string // Container
	stem    string // the file's name without its extension
	unit    Unit
	errs    []error
}

// open parses a file of the set and checks the names of its keys.
func (s *Set) open(name string) (*parser, error) {
	files := s.Files[name]
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no file %s beside this one", name)
	}
	q, err := parseAll(files)
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(name)
	p := &parser{set: s, q: q, path: files[0].Name, section: sections()[ext], stem: strings.TrimSuffix(name, ext)}
	p.unit.Extra = map[string][]string{"Install": nil}
	p.keys()
	return p, nil
}

func (p *parser) fail(a Assignment, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", a.Where, a.Key, fmt.Sprintf(format, args...)))
}

// add adds a line to a section of the unit.
func (p *parser) add(section, line string) {
	p.unit.Extra[section] = append(p.unit.Extra[section], line)
}

func (p *parser) keys() {
	if !slices.Contains(p.q.names, p.section) {
		p.errs = append(p.errs, fmt.Errorf("%s: there is no section [%s]", p.path, p.section))
	}
	for _, a := range p.q.sections[p.section] {
		switch k, known := findKey(p.section, a.Key); {
		case !known:
			p.fail(a, "Quadlet has no such key of [%s]", p.section)
		case k.support == keyRefused && a.Value != "":
			p.fail(a, "%s", k.note)
		}
	}
	for _, a := range p.q.sections["Quadlet"] {
		on, ok := parseBool(a.Value)
		if a.Key != "DefaultDependencies" || !ok {
			p.fail(a, "[Quadlet] has DefaultDependencies=yes or no only")
		}
		p.unit.NeedsNetwork = on
	}
	if p.q.last("Quadlet", "DefaultDependencies") == "" {
		p.unit.NeedsNetwork = true
	}
}

// flag returns the value of a key that is yes or no.
func (p *parser) flag(name string) bool {
	on := false
	for _, a := range p.q.all(p.section, name) {
		var ok bool
		if on, ok = parseBool(a.Value); !ok && a.Value != "" {
			p.fail(a, "use yes or no")
		}
	}
	return on
}

// dependencies are the keys of [Unit] that name other units.
var dependencies = []string{
	"After", "Before", "BindsTo", "Conflicts", "OnFailure", "OnSuccess", "PartOf", "PropagatesReloadTo", "PropagatesStopTo",
	"ReloadPropagatedFrom", "Requires", "Requisite", "StopPropagatedFrom", "Upholds", "Wants",
}

// passSections copies the sections for systemd.
func (p *parser) passSections() {
	for _, section := range p.q.names {
		if section == p.section || section == "Quadlet" {
			continue
		}
		for _, a := range p.q.sections[section] {
			keep := true
			switch section {
			case "Unit":
				a, keep = p.dependency(a)
			case "Service":
				p.service(a)
			case "Install":
				keep = a.Key != "DefaultInstance" // the unit is that instance
			case "X-Podrun":
				p.fail(a, "podrun writes section [%s] itself; remove it", section)
			default:
				if !strings.HasPrefix(section, "X-") {
					p.fail(a, "podrun does not support section [%s] in a .%s file", section, strings.ToLower(p.section))
				}
			}
			if keep {
				p.add(section, a.String())
			}
		}
	}
	p.unit.OneShot = p.q.last("Service", "Type") == "oneshot"
	for _, a := range p.q.all("Service", "WatchdogSec") {
		if p.unit.OneShot {
			p.fail(a, "a unit of Type=oneshot has no watchdog; remove it")
		}
	}
}

func (p *parser) service(a Assignment) {
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

// dependency translates the names of other files. keep is false if none of them has a unit.
func (p *parser) dependency(a Assignment) (_ Assignment, keep bool) {
	if !slices.Contains(dependencies, a.Key) {
		return a, true
	}
	var units []string
	for _, word := range strings.Fields(a.Value) {
		if !IsFile(word) {
			units = append(units, word)
			continue
		}
		service, err := p.set.serviceOf(word)
		switch {
		case err != nil:
			p.fail(a, "%v", err)
		case service != "" && service != p.unit.Service+".service":
			units = append(units, service)
		}
	}
	if len(units) == 0 && a.Value != "" {
		return a, false
	}
	a.Value = strings.Join(units, " ")
	return a, true
}

// serviceOf returns the service of a file, "" for a volume or a network, which has none.
func (s *Set) serviceOf(name string) (string, error) {
	switch filepath.Ext(name) {
	case ".image", ".build", ".artifact":
		return "", fmt.Errorf("%s is a unit of podman: name the image in the .container file, which podrun pulls", name)
	}
	q, err := parseAll(s.Files[name])
	if err != nil || len(s.Files[name]) == 0 {
		return "", errors.Join(err, fmt.Errorf("there is no file %s beside this one", name))
	}
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	switch {
	case ext == ".volume" || ext == ".network":
		return "", nil
	case ext == ".container" && q.last("Container", "Pod") != "":
		return s.serviceOf(q.last("Container", "Pod"))
	case q.last(sections()[ext], "ServiceName") != "":
		return strings.TrimSuffix(q.last(sections()[ext], "ServiceName"), ".service") + ".service", nil
	case ext == ".pod":
		return podService(stem) + ".service", nil
	}
	return stem + ".service", nil
}

// podService returns the name of the service of a .pod file: Quadlet's.
func podService(stem string) string {
	prefix, instance, isInstance := strings.Cut(stem, "@")
	if isInstance {
		return prefix + "-pod@" + instance
	}
	return stem + "-pod"
}
