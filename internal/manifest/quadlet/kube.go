package quadlet

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PodOptions returns the options of podrun up that set something in Pods.
func (k *Unit) PodOptions() (options []string) {
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

// kube reads the section of a .kube file.
func (p *parser) kube() {
	p.unit.Service = strings.TrimSuffix(filepath.Base(p.path), ".kube")
	p.kubeSection()
	p.workingDirectory()
}

func (p *parser) kubeSection() {
	p.yaml()
	p.podOptions()
	if name := p.q.last("Kube", "ServiceName"); name != "" {
		p.unit.Service = strings.TrimSuffix(name, ".service")
	}
	for _, a := range p.q.all("Kube", "ExitCodePropagation") {
		if !slices.Contains([]string{"all", "any", "none"}, a.Value) {
			p.fail(a, "use all, any or none")
		}
	}
	// Quadlet's default is "none": a failed container does not fail the unit.
	p.unit.ExitFrom = p.q.last("Kube", "ExitCodePropagation")
	if p.unit.ExitFrom == "" {
		p.unit.ExitFrom = "none"
	}
	for _, a := range p.q.all("Kube", "KubeDownForce") { // removing the pod removes its data in any case
		if _, ok := parseBool(a.Value); !ok {
			p.fail(a, "use yes or no")
		}
	}
	p.logDriver()
}

// logDriver reads where the output goes. Quadlet's default is the journal.
func (p *parser) logDriver() {
	for _, a := range p.q.all(p.section, "LogDriver") {
		switch a.Value {
		case "journald", "passthrough":
			p.unit.Quiet = false
		case "k8s-file", "json-file", "none":
			p.unit.Quiet = true
		default:
			p.fail(a, "use journald or passthrough (the unit's journal), or k8s-file or none (only podrun logs)")
		}
	}
}

// yaml reads the manifests.
func (p *parser) yaml() {
	// A file of ConfigMaps is a manifest like any other.
	for _, key := range []string{"Yaml", "ConfigMap"} {
		for _, a := range p.q.all("Kube", key) {
			if path, err := p.resolve(trimQuotes(a.Value)); err != nil {
				p.fail(a, "%v", err)
			} else {
				p.unit.Yaml = append(p.unit.Yaml, path)
			}
		}
	}
	if len(p.q.all("Kube", "Yaml")) == 0 {
		p.errs = append(p.errs, fmt.Errorf("%s: [Kube] has no Yaml=, the manifest to run", p.path))
	}
}

// podOptions reads the keys that set something in Pods.
func (p *parser) podOptions() {
	networks := map[string]bool{}
	for _, a := range p.q.all("Kube", "Network") {
		mode := p.network(a)
		if networks[mode] = true; len(networks) > 1 {
			p.fail(a, "a pod has one network")
		}
		if p.unit.Network = mode; mode != "" {
			p.unit.PodsOnly = append(p.unit.PodsOnly, a)
		}
	}
	p.logOpt()
	p.unit.Publish = p.values("PublishPort")
	for i := range p.unit.Publish {
		p.unit.Publish[i].Value = p.withHostPort(p.unit.Publish[i].Value)
	}
	p.unit.AutoUpdate = p.values("AutoUpdate")
	p.unit.PodsOnly = slices.Concat(p.unit.PodsOnly, p.unit.Publish, p.unit.AutoUpdate)
}

// logOpt reads the options of logs.
func (p *parser) logOpt() {
	for _, a := range p.q.all(p.section, "LogOpt") {
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
			p.unit.LogMaxSize = size
		}
		p.unit.PodsOnly = append(p.unit.PodsOnly, a)
	}
}

// values returns the values of a key that may occur several times. podrun systemd checks them.
func (p *parser) values(key string) (list []Assignment) {
	for _, a := range p.q.all("Kube", key) {
		if a.Value != "" {
			a.Value = trimQuotes(a.Value)
			list = append(list, a)
		}
	}
	return list
}

// network returns podrun's mode for a network of podman; "" is podrun's own network.
func (p *parser) network(a Assignment) string {
	name, _, options := strings.Cut(a.Value, ":")
	isPodNetwork := slices.Contains([]string{"", "bridge", "pasta", "private", "slirp4netns"}, name)
	switch {
	case strings.HasSuffix(name, ".container"):
		p.fail(a, "containers that share a network are containers of one pod: write Pod=x.pod into both files")
	case strings.HasSuffix(name, ".network") && !options:
		p.networkFile(a, name)
	case name == "ns" || name == "container" || !isPodNetwork && name != "host" && name != "none":
		p.fail(a, "podrun has no network %q: use host or none; without it the pod reaches other networks and the user's other pods, also by name", a.Value)
	case options:
		p.fail(a, "podrun has no network options; write %s=%s", a.Key, name)
	case !isPodNetwork:
		return name
	}
	return ""
}

// The host ports of PublishPort= without one. They are below the NodePorts and below the ports that Linux gives to clients.
const firstChosen, chosenPorts = 20000, 10000

// withHostPort adds a host port to a published port without one. The port follows from the file's name and the port, so
// that it is the same whenever the unit is made.
func (p *parser) withHostPort(value string) string {
	numbers, protocol, hasProtocol := strings.Cut(value, "/")
	address, port := "", numbers
	if i := strings.LastIndexByte(numbers, ':'); i >= 0 {
		address, port = numbers[:i], numbers[i+1:]
		if !strings.HasSuffix(address, ":") && address != "" {
			return value
		}
		address = strings.TrimSuffix(address, ":")
	}
	from, to, isRange := strings.Cut(port, "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last, lastErr := strconv.ParseUint(to, 10, 16)
	if err != nil || isRange && (lastErr != nil || last < first) {
		return value // podrun systemd refuses it
	}
	hash := fnv.New32a()
	hash.Write([]byte(p.unit.Service + "/" + numbers + "/" + protocol))
	chosen := firstChosen + uint64(hash.Sum32()%chosenPorts)
	host := strconv.FormatUint(chosen, 10)
	if isRange {
		host += "-" + strconv.FormatUint(chosen+last-first, 10)
	}
	if address != "" {
		host = address + ":" + host
	}
	if host += ":" + port; hasProtocol {
		host += "/" + protocol
	}
	return host
}

// logSize converts a size of podman, whose units are powers of 1000, to a number of bytes.
func logSize(text string) (string, bool) {
	number := strings.TrimRight(text, "kmgbKMGB")
	factor, known := map[string]uint64{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}[strings.ToLower(text[len(number):])]
	n, err := strconv.ParseUint(number, 10, 32)
	return strconv.FormatUint(n*factor, 10), known && err == nil && n*factor >= 4096
}

// resolve makes a path absolute, from the directory of the file.
func (p *parser) resolve(path string) (string, error) {
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return "", errors.New("podrun reads files, not URLs: download it first")
	}
	path, err := p.specifiers(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(p.path), path)
	}
	return filepath.Clean(path), nil
}

func (p *parser) workingDirectory() {
	for _, a := range p.q.all("Kube", "SetWorkingDirectory") {
		dir := filepath.Dir(p.path)
		switch {
		case a.Value != "yaml" && a.Value != "unit":
			p.fail(a, "use yaml or unit")
		case a.Value == "yaml" && len(p.q.all("Kube", "Yaml")) > 1:
			p.fail(a, "yaml requires a single Yaml=")
		case a.Value == "yaml" && len(p.unit.Yaml) > 0:
			dir = filepath.Dir(p.unit.Yaml[0])
		}
		if p.q.last("Service", "WorkingDirectory") == "" {
			p.add("Service", "WorkingDirectory="+strings.ReplaceAll(dir, "%", "%%"))
		}
	}
}
