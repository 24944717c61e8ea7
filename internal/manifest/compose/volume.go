package compose

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// claims makes a PersistentVolumeClaim for every volume that a service uses.
func (c *converter) claims() {
	for _, key := range c.project.VolumeNames() {
		v := c.project.Volumes[key]
		if v.Driver != "" && v.Driver != "local" {
			c.refuse([]string{"volumes", key, "driver"}, "is refused: a volume is a directory: mount other storage on the host, and name its path in volumes of the service")
		}
		if v.External {
			continue
		}
		c.add("v1", "PersistentVolumeClaim", toName(v.Name), []string{"volumes", key}, object{"spec": object{
			"accessModes": []string{"ReadWriteOnce"},
			"resources":   object{"requests": object{"storage": "1Gi"}}, // required, and no limit here
		}})
	}
}

// mount adds a volume and its mount.
func (s *service) mount(target string, volume, options object) {
	base := cmp.Or(api.Label(target), "root")
	name := base
	for n := 2; slices.ContainsFunc(s.volumes, func(v object) bool { return v["name"] == name }); n++ {
		name = fmt.Sprintf("%.50s-%d", base, n)
	}
	volume["name"] = name
	options["name"], options["mountPath"] = name, target
	s.volumes = append(s.volumes, volume)
	s.mounts = append(s.mounts, options)
}

// placedVolume is a volume and its place in the files.
type placedVolume struct {
	types.ServiceVolumeConfig
	path []string
}

// allVolumes returns the volumes of a service, and those volumes of the services in volumes_from that have other paths.
func (s *service) allVolumes() (list []placedVolume) {
	for i, v := range s.Volumes {
		list = append(list, placedVolume{v, s.at("volumes", strconv.Itoa(i))})
	}
	for i, from := range s.VolumesFrom {
		keyPath := s.at("volumes_from", strconv.Itoa(i))
		name, readOnly := strings.CutSuffix(strings.TrimSuffix(from, ":rw"), ":ro")
		if container, ok := strings.CutPrefix(name, "container:"); ok {
			name = s.withContainerName(container)
		}
		other, active := s.project.Services[name]
		if !active {
			s.refuse(keyPath, "is refused: no active service of the file is %s", from)
			continue
		}
		for _, v := range (&service{converter: s.converter, ServiceConfig: other}).allVolumes() {
			switch {
			case v.Type == types.VolumeTypeTmpfs || slices.ContainsFunc(list, func(had placedVolume) bool { return had.Target == v.Target }):
				continue
			case v.Source == "":
				s.refuse(keyPath, "is refused: give the volume %s of the service %s a name", v.Target, name)
			}
			v.ReadOnly = v.ReadOnly || readOnly
			list = append(list, placedVolume{v.ServiceVolumeConfig, keyPath})
		}
	}
	return list
}

func (s *service) setVolumes() {
	for _, placed := range s.allVolumes() {
		v, keyPath := placed.ServiceVolumeConfig, placed.path
		options := object{}
		options.set("readOnly", v.ReadOnly)
		if s.isSocket(v) {
			s.refuse(keyPath, "is refused: there is no docker daemon and no docker API: %s", s.insteadOfSocket())
			continue
		}
		switch v.Type {
		case types.VolumeTypeBind:
			s.setBind(v, options, keyPath)
		case types.VolumeTypeVolume:
			volume := object{"emptyDir": object{}}
			if v.Source == "" {
				s.warn(keyPath, "is removed with the pod: a volume with a name stays")
			} else {
				volume = object{"persistentVolumeClaim": object{"claimName": toName(s.project.Volumes[v.Source].Name)}}
			}
			if v.Volume != nil {
				options.set("subPath", v.Volume.Subpath)
			}
			s.mount(v.Target, volume, options)
		case types.VolumeTypeTmpfs:
			memory := object{"medium": "Memory"}
			if v.Tmpfs != nil {
				memory.set("sizeLimit", bytesOf(v.Tmpfs.Size))
				memory.set("mode", int64(v.Tmpfs.Mode))
			}
			s.mount(v.Target, object{"emptyDir": memory}, options)
		case types.VolumeTypeImage:
			if v.Image != nil {
				options.set("subPath", v.Image.SubPath)
			}
			s.mount(v.Target, object{"image": object{"reference": v.Source, "pullPolicy": "IfNotPresent"}}, options)
		default:
			s.refuse(keyPath, "is refused: use volume, bind, tmpfs or image, not %s", v.Type)
		}
	}
	for i, t := range s.Tmpfs {
		target, list, _ := strings.Cut(t, ":")
		options := object{}
		s.mount(target, object{"emptyDir": s.tmpfs(list, options, s.at("tmpfs", strconv.Itoa(i)))}, options)
	}
}

// isSocket reports whether a volume is the socket of a container daemon.
func (s *service) isSocket(v types.ServiceVolumeConfig) bool {
	return v.Type == types.VolumeTypeBind && slices.Contains([]string{"docker.sock", "podman.sock"}, path.Base(v.Source))
}

// insteadOfSocket says what a program does without the docker API, by its image.
func (s *service) insteadOfSocket() string {
	for _, row := range [][2]string{
		{"traefik", "let %s read its routes from files (--providers.file.directory), with http://SERVICE:PORT as their servers"},
		{"watchtower", "podrun update --auto does what %s does"},
		{"diun", "podrun update --auto does what %s does"},
		{"autoheal", "a livenessProbe of a Pod does what %s does"},
		{"ofelia", "a CronJob of Kubernetes does what %s does"},
		{"portainer", "podrun ui does what %s does"},
		{"dozzle", "podrun ui and podrun logs do what %s does"},
		{"caddy-docker-proxy", "let %s read a Caddyfile, with http://SERVICE:PORT as its upstreams"},
	} {
		if strings.Contains(s.Image, row[0]) || strings.Contains(s.Name, row[0]) {
			return fmt.Sprintf(row[1], s.Name)
		}
	}
	return fmt.Sprintf("leave out %s, or configure it without the socket", s.Name)
}

// propagations are the modes of Kubernetes. Docker's modes without r are for the mount alone.
var propagations = map[string]string{"": "", "private": "", "rprivate": "", "rslave": "HostToContainer", "rshared": "Bidirectional"}

// setBind mounts a path of the host. What is missing is created as a directory, unless create_host_path is
// false.
func (s *service) setBind(v types.ServiceVolumeConfig, options object, keyPath []string) {
	create, propagation := true, ""
	if v.Bind != nil {
		create, propagation = bool(v.Bind.CreateHostPath), v.Bind.Propagation
	}
	mode, ok := propagations[propagation]
	if !ok {
		s.refuse(keyPath, "is refused: the propagation is rprivate, rslave or rshared, not %s", propagation)
	}
	options.set("mountPropagation", mode)
	source := object{"path": v.Source}
	if _, err := s.host.stat(v.Source); err != nil {
		source["type"] = "Directory"
		if create {
			source["type"] = "DirectoryOrCreate"
		}
	}
	s.mount(v.Target, object{"hostPath": source}, options)
}

// tmpfs returns an emptyDir for the options of a tmpfs, and sets the options of its mount.
func (s *service) tmpfs(list string, mount object, keyPath []string) object {
	memory := object{"medium": "Memory"}
	for option := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "", "rw", "nosuid", "nodev", "exec": // an emptyDir is nosuid and nodev
		case "noexec":
			mount["bindMountOptions"] = []string{"noexec"}
		case "ro":
			mount["readOnly"] = true
		case "size":
			n, err := units.RAMInBytes(value)
			if err != nil {
				s.refuse(keyPath, "is refused: %v", err)
			}
			memory.set("sizeLimit", bytesOf(types.UnitBytes(n)))
		case "mode":
			n, err := strconv.ParseInt(value, 8, 32)
			if err != nil {
				s.refuse(keyPath, "is refused: %v", err)
			}
			memory.set("mode", n)
		case "uid", "gid":
			s.warn(keyPath, "has no effect in %s: the directory belongs to root, and without mode everyone may write to it", option)
		case "suid", "dev", "sync", "async", "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "nr_inodes", "nr_blocks", "mpol":
			s.warn(keyPath, "has no effect in %s", option)
		default:
			s.refuse(keyPath, "is refused: tmpfs has no option %s", option)
		}
	}
	return memory
}

// fileKinds are the two kinds of objects with files, by the attribute of a service.
var fileKinds = map[string]struct{ kind, volume, object, directory string }{
	"secrets": {"Secret", "secret", "secretName", "/run/secrets"},
	"configs": {"ConfigMap", "configMap", "name", "/"},
}

// objectsOfFiles makes a ConfigMap for every config and a Secret for every secret.
func (c *converter) objectsOfFiles() {
	for _, key := range c.project.ConfigNames() {
		c.objectOfFile("configs", key, types.FileObjectConfig(c.project.Configs[key]))
	}
	for _, key := range c.project.SecretNames() {
		c.objectOfFile("secrets", key, types.FileObjectConfig(c.project.Secrets[key]))
	}
}

func (c *converter) objectOfFile(attribute, key string, f types.FileObjectConfig) {
	if f.External {
		return
	}
	keyPath := []string{attribute, key}
	text := []byte(f.Content)
	switch {
	case f.File != "":
		var err error
		if text, err = c.reader.read(f.File); err != nil {
			c.refuse(append(keyPath, "file"), "cannot be read: %v", err)
		}
	case f.Environment != "":
		value, ok := c.project.Environment[f.Environment]
		switch {
		case c.withheld(f.Environment):
			c.refuse(append(keyPath, "environment"), "%s", withheldText(f.Environment))
		case !ok:
			c.refuse(append(keyPath, "environment"), "cannot be read: the variable %s is not set", f.Environment)
		}
		text = []byte(value)
	}
	kind, data := fileKinds[attribute].kind, object{}
	switch {
	case kind == "Secret":
		data["data"] = object{key: base64.StdEncoding.EncodeToString(text)}
	case utf8.Valid(text):
		data["data"] = object{key: string(text)}
	default:
		data["binaryData"] = object{key: base64.StdEncoding.EncodeToString(text)}
	}
	c.add("v1", kind, toName(f.Name), keyPath, data)
}

// setFiles mounts the files of configs and secrets.
func (s *service) setFiles() {
	for _, f := range s.Configs {
		s.setFile("configs", types.FileReferenceConfig(f), s.project.Configs[f.Source].Name)
	}
	for _, f := range s.Secrets {
		s.setFile("secrets", types.FileReferenceConfig(f), s.project.Secrets[f.Source].Name)
	}
}

// fileMode is the mode of a file of a config or a secret (compose specification, secrets).
const fileMode = 0o444

func (s *service) setFile(attribute string, f types.FileReferenceConfig, name string) {
	k := fileKinds[attribute]
	target := f.Target
	if target == "" {
		target = f.Source
	}
	if !path.IsAbs(target) {
		target = path.Join(k.directory, target)
	}
	mode := int64(fileMode)
	if f.Mode != nil {
		mode = int64(*f.Mode)
	}
	s.mount(target, object{k.volume: object{
		k.object: toName(name), "defaultMode": mode, "items": []object{{"key": f.Source, "path": f.Source}},
	}}, object{"subPath": f.Source, "readOnly": true})
}
