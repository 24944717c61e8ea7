package quadlet

import (
	"encoding/csv"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/manifest/runpod"
)

// source is what a .volume file stands for.
type source struct {
	kind   string // of --mount: volume, bind, image or tmpfs
	name   string // the claim, the path or the image
	labels []string
}

// files mounts volumes and file systems in memory.
func (p *parser) files(c *runpod.Container) {
	for _, a := range p.q.all("Container", "Volume") {
		p.volume(c, a)
	}
	for _, a := range p.q.all("Container", "Mount") {
		list, err := p.wordList(a.Value)
		if err != nil {
			p.fail(a, "%v", err)
		}
		for _, word := range list {
			p.mount(c, a, word)
		}
	}
	readOnly, at := p.flag("ReadOnly"), p.lastOf("ReadOnly")
	if len(p.q.all("Container", "ReadOnlyTmpfs")) == 0 || p.flag("ReadOnlyTmpfs") {
		for _, dir := range []string{"/run", "/tmp", "/var/tmp"} {
			if readOnly && !mounted(c, dir) {
				p.set1(c, at, "tmpfs", dir)
			}
		}
	}
	if p.flag("VolatileTmp") && !readOnly && !mounted(c, "/tmp") {
		p.set1(c, p.lastOf("VolatileTmp"), "tmpfs", "/tmp:size=512M,mode=1777")
	}
}

// mounted reports whether something is mounted at a path.
func mounted(c *runpod.Container, path string) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == path {
			return true
		}
	}
	return false
}

// volume mounts what a line of Volume= names.
func (p *parser) volume(c *runpod.Container, a Assignment) {
	word, err := p.value(a.Value)
	switch {
	case err != nil:
		p.fail(a, "%v", err)
		return
	case word == "":
		return
	}
	parts := strings.SplitN(word, ":", 3)
	if len(parts) == 1 {
		p.set1(c, a, "volume", word)
		return
	}
	s, err := p.source(parts[0])
	switch {
	case err != nil:
		p.fail(a, "%v", err)
		return
	case s.kind == "volume", s.kind == "bind":
		parts[0] = s.name
		p.set1(c, a, "volume", strings.Join(parts, ":"))
	default:
		word := "type=" + s.kind + ",destination=" + parts[1]
		if s.name != "" {
			word += ",source=" + s.name
		}
		if len(parts) == 3 && slices.Contains(strings.Split(parts[2], ","), "ro") {
			word += ",readonly"
		}
		p.set1(c, a, "mount", word)
	}
	c.LabelClaim(s.name, s.labels)
}

// mount mounts what a word of Mount= describes.
func (p *parser) mount(c *runpod.Container, a Assignment, word string) {
	fields, err := csv.NewReader(strings.NewReader(word)).Read()
	if err != nil {
		p.fail(a, "%q is no list of key=value: %v", word, err)
		return
	}
	var s source
	kind := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "type=") })
	for i, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		if (key != "source" && key != "src") || kind >= 0 && fields[kind] == "type=bind" && !strings.HasSuffix(value, ".volume") {
			continue
		}
		switch ext := filepath.Ext(value); {
		case ext == ".image" || ext == ".artifact" || ext == ".build":
			p.fail(a, "podrun has no %s files: write the name of the image", ext)
		case ext == ".volume" || kind < 0 || fields[kind] == "type=volume":
			if s, err = p.source(value); err != nil {
				p.fail(a, "%v", err)
				return
			}
			if fields[i] = "source=" + s.name; kind >= 0 {
				fields[kind] = "type=" + s.kind
			}
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	err = w.Write(fields)
	w.Flush()
	if err != nil {
		p.fail(a, "%v", err)
		return
	}
	p.set1(c, a, "mount", strings.TrimSuffix(b.String(), "\n"))
	c.LabelClaim(s.name, s.labels)
}

// source returns what the source of a volume stands for: a path, a name or a .volume file.
func (p *parser) source(name string) (source, error) {
	switch {
	case strings.HasPrefix(name, "/") || strings.HasPrefix(name, "."):
		return source{kind: "bind", name: name}, nil
	case filepath.Ext(name) != ".volume":
		return source{kind: "volume", name: runpod.ObjectName(name)}, nil
	}
	v, err := p.set.open(name)
	if err != nil {
		return source{}, err
	}
	if v.stem, _ = strings.CutSuffix(v.stem, "@"); strings.HasSuffix(name, "@.volume") { // the volume of this instance
		_, instance, _ := strings.Cut(p.stem, "@")
		v.stem += "-" + instance
	}
	s := v.volumeFile()
	return s, errors.Join(v.errs...)
}

// volumeFile reads a .volume file.
func (p *parser) volumeFile() source {
	s := source{kind: "volume", name: "systemd-" + p.stem}
	values := map[string]string{}
	for _, k := range volumeKeys() {
		for _, a := range p.q.all("Volume", k.name) {
			value, err := p.value(a.Value)
			if err != nil {
				p.fail(a, "%v", err)
			}
			values[k.name] = value
		}
	}
	if name := values["VolumeName"]; name != "" {
		s.name = name
	}
	s.name = runpod.ObjectName(s.name)
	for _, a := range p.q.all("Volume", "Label") {
		list, err := p.wordList(a.Value)
		if err != nil {
			p.fail(a, "%v", err)
		}
		s.labels = append(s.labels, list...)
	}
	if p.flag("Copy") {
		p.fail(p.lastOf("Copy"), "podrun copies no files of an image into a volume: use no")
	}
	if user := values["User"]; user != "" && user != "root" && user != "0" {
		p.fail(p.lastOf("User"), "a volume belongs to root of the container: write fsGroup into a manifest, and remove it")
	}
	switch driver := values["Driver"]; {
	case driver == "image":
		p.imageVolume(&s, values["Image"])
	case driver != "" && driver != "local":
		p.fail(p.lastOf("Driver"), "use local or image: mount other storage on the machine, and name its path with Type=bind and Device=")
	case values["Image"] != "":
		p.fail(p.lastOf("Image"), "it requires Driver=image")
	default:
		p.deviceVolume(&s, values)
	}
	return s
}

// imageVolume makes a volume of an image.
func (p *parser) imageVolume(s *source, image string) {
	ext := filepath.Ext(image)
	switch {
	case image == "":
		p.fail(p.lastOf("Driver"), "image requires Image=, the image")
	case ext == ".image" || ext == ".build":
		p.fail(p.lastOf("Image"), "podrun has no %s files: write the name of the image", ext)
	}
	s.kind, s.name = "image", image
}

// deviceVolume makes a volume of a path of the machine, or in memory.
func (p *parser) deviceVolume(s *source, values map[string]string) {
	device := values["Device"]
	for option := range strings.SplitSeq(values["Options"], ",") {
		if values["Type"] != "bind" && option != "" || !slices.Contains([]string{"", "rw", "bind", "rbind"}, option) {
			p.fail(p.lastOf("Options"), "%q has no counterpart; write ro, if that is wanted, into Volume= of the container", option)
		}
	}
	switch kind := values["Type"]; {
	case device == "" && kind != "":
		p.fail(p.lastOf("Type"), "it requires Device=")
	case device == "":
	case kind == "bind" && filepath.IsAbs(device):
		s.kind, s.name = "bind", device
	case kind == "bind":
		p.fail(p.lastOf("Device"), "%q is not an absolute path", device)
	case kind == "tmpfs":
		s.kind, s.name = "tmpfs", ""
	default:
		p.fail(p.lastOf("Device"), "podrun mounts no devices: mount it on the machine, and name its path with Type=bind and Device=")
	}
}

// networkFile reads a .network file that a pod names.
func (p *parser) networkFile(a Assignment, name string) {
	n, err := p.set.open(name)
	if err != nil {
		p.fail(a, "%v", err)
		return
	}
	for key, allowed := range map[string]string{"Driver": "bridge", "IPAMDriver": "host-local"} {
		for _, v := range n.q.all("Network", key) {
			if v.Value != "" && v.Value != allowed {
				n.fail(v, "%s", reason(key))
			}
		}
	}
	for _, key := range []string{"DisableDNS", "Internal"} {
		if n.flag(key) {
			n.fail(n.lastOf(key), "%s", reason(key))
		}
	}
	subnets := len(n.q.all("Network", "Subnet"))
	for _, key := range []string{"Gateway", "IPRange"} {
		if len(n.q.all("Network", key)) > subnets {
			n.fail(n.lastOf(key), "there are more of it than of Subnet=")
		}
	}
	p.errs = append(p.errs, n.errs...)
}

// reason returns why a value of a key of [Network] is refused, by its note.
func reason(key string) string {
	k, _ := findKey("Network", key)
	_, why, _ := strings.Cut(k.note, "refused: ")
	return why
}

// networkServers returns the name servers of a .network file.
func (p *parser) networkServers(name string) (list []string) {
	q, err := parseAll(p.set.Files[name])
	if err != nil || filepath.Ext(name) != ".network" {
		return nil
	}
	for _, a := range q.all("Network", "DNS") {
		if a.Value != "" {
			list = append(list, a.Value)
		}
	}
	return list
}
