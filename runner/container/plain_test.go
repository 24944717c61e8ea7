package container

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

func plainExample() (*configs.Config, *libcontainer.Process, plainHost) {
	const private = unix.MS_PRIVATE | unix.MS_REC
	c := &configs.Config{
		Rootfs: "/root", RootPropagation: private, Namespaces: configs.Namespaces{{Type: configs.NEWNS}}, NoNewKeyring: true,
		Mounts: []*configs.Mount{
			{Source: "proc", Destination: "/proc", Device: "proc", Flags: unix.MS_NOSUID},
			{Source: "/a", Destination: "/dev", Device: "bind", Flags: unix.MS_BIND | unix.MS_REC, PropagationFlags: []int{private}},
			{Source: "cgroup", Destination: "/sys/fs/cgroup", Device: "cgroup", Flags: unix.MS_RDONLY},
		},
		MaskPaths: []string{"/proc/kcore"}, ReadonlyPaths: []string{"/proc/sys"},
	}
	p := &libcontainer.Process{
		Args: []string{"/proc/self/fd/3", "sh"}, Env: []string{"A=1"}, Cwd: "/", ExtraFiles: []*os.File{nil}, Capabilities: &configs.Capabilities{},
	}
	return c, p, plainHost{cgroup2Only: true, mountAttrs: true}
}

func TestPlainContainers(t *testing.T) {
	for name, example := range map[string]struct {
		change func(c *configs.Config, p *libcontainer.Process, h *plainHost)
		plain  bool
	}{
		"plain": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {}, true},
		"its root is a slave": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.RootPropagation = unix.MS_SLAVE | unix.MS_REC
		}, true},
		"the host's /proc": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.Mounts[0].Device, c.Mounts[0].Flags = "bind", unix.MS_BIND
		}, true},
		"a devpts of its own": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.Mounts[2].Device, c.Mounts[2].Destination = "devpts", "/dev/pts"
		}, true},
		"HOME": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Env = []string{"HOME=/a"} }, true},
		"unmasked": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.MaskPaths, c.ReadonlyPaths = nil, nil
		}, true},
		"an old kernel":        {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { h.mountAttrs = false }, false},
		"cgroups of version 1": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { h.cgroup2Only = false }, false},
		"version 1, no cgroup mounted": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			h.cgroup2Only, c.Mounts = false, c.Mounts[:2]
		}, true},
		"its root is shared": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.RootPropagation = unix.MS_SHARED | unix.MS_REC
		}, false},
		"no /dev of podrun's":      {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.Mounts = c.Mounts[:1] }, false},
		"a volume":                 {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.Mounts[2].Destination = "/data" }, false},
		"a tmpfs":                  {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.Mounts[0].Device = "tmpfs" }, false},
		"a mount with other flags": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.Mounts[1].Flags |= unix.MS_NOATIME }, false},
		"a read-only /dev":         {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.Mounts[1].Flags |= unix.MS_RDONLY }, false},
		"a user namespace": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) {
			c.Namespaces.Add(configs.NEWUSER, "/a")
		}, false},
		"a keyring of its own":     {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.NoNewKeyring = false }, false},
		"a masked path elsewhere":  {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.MaskPaths[0] = "/sys/firmware" }, false},
		"a masked path with dots":  {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { c.MaskPaths[0] = "/proc/../sys" }, false},
		"without the exec shim":    {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.ExtraFiles = nil }, false},
		"a program in PATH":        {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Args[0] = "sh" }, false},
		"a variable twice":         {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Env = []string{"A=1", "A=2"} }, false},
		"a variable without value": {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Env = []string{"A"} }, false},
		"an empty HOME":            {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Env = []string{"HOME="} }, false},
		"a NUL":                    {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Args[1] = "\x00" }, false},
		"a relative directory":     {func(c *configs.Config, p *libcontainer.Process, h *plainHost) { p.Cwd = "a" }, false},
	} {
		c, p, h := plainExample()
		example.change(c, p, &h)
		if got := isPlain(c, p, h); got != example.plain {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a later version of libcontainer adds is not plain, and neither is anything that is not named here: done by the init,
// by libcontainer's parent side, or by nsexec.
func TestWhatIsNotNamedIsNotPlain(t *testing.T) {
	config, process, host := plainExample()
	for _, part := range []struct {
		value any
		named []string
	}{
		{config, []string{"Rootfs", "Readonlyfs", "RootPropagation", "Mounts", "Devices", "Namespaces", "Capabilities", "Cgroups", "Rlimits", "OomScoreAdj",
			"MaskPaths", "ReadonlyPaths", "NoNewPrivileges", "Version", "Labels", "NoNewKeyring", "RootlessCgroups"}},
		{process, []string{"Init", "Args", "Env", "UID", "GID", "AdditionalGroups", "Cwd", "Stdin", "Stdout", "Stderr", "ExtraFiles", "Capabilities",
			"NoNewPrivileges", "Rlimits", "LogLevel", "SubCgroupPaths"}},
		{config.Mounts[1], []string{"Source", "Destination", "Device", "Flags", "ClearedFlags", "PropagationFlags", "Relabel"}},
	} {
		v := reflect.ValueOf(part.value).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || slices.Contains(part.named, field.Name) {
				continue
			}
			v.Field(i).Set(something(field.Type))
			if isPlain(config, process, host) {
				t.Errorf("a container with %s.%s is plain", v.Type(), field.Name)
			}
			v.Field(i).SetZero()
		}
		if !isPlain(config, process, host) {
			t.Fatal("the example is not plain")
		}
	}
}

// something returns a value that is not the zero value.
func something(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		element := reflect.New(of.Elem()).Elem()
		if element.Kind() == reflect.Slice {
			element = reflect.MakeSlice(of.Elem(), 1, 1)
		}
		v.SetMapIndex(reflect.Zero(of.Key()), element)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else {
			v.SetUint(1)
		}
	}
	return v
}
