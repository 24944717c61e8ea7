package prepared

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// Containers that may be made early, and containers that depend on what others do until then.
func TestPreparable(t *testing.T) {
	mount := func(ms ...pod.Mount) func(*pod.Plan, *pod.Container) {
		return func(_ *pod.Plan, c *pod.Container) { c.Mounts = ms }
	}
	for name, c := range map[string]struct {
		change func(*pod.Plan, *pod.Container)
		want   bool
	}{
		"nothing special":       {func(*pod.Plan, *pod.Container) {}, true},
		"whole volumes":         {mount(pod.Mount{Volume: "dir", Path: "/a"}, pod.Mount{Volume: "files", Path: "/ab"}), true},
		"the working directory": {func(_ *pod.Plan, c *pod.Container) { c.Mounts, c.Cwd = []pod.Mount{{Volume: "dir", Path: "/a"}}, "/a" }, true},
		"one below it": {func(_ *pod.Plan, c *pod.Container) {
			c.Mounts, c.Cwd = []pod.Mount{{Volume: "dir", Path: "/a"}}, "/a/b"
		}, false},
		"subPath":               {mount(pod.Mount{Volume: "dir", Path: "/a", SubPath: "x"}), false},
		"subPathExpr":           {mount(pod.Mount{Volume: "dir", Path: "/a", SubPathExpr: "$(X)"}), false},
		"hostPath":              {mount(pod.Mount{Volume: "host", Path: "/a"}), false},
		"propagation":           {mount(pod.Mount{Volume: "dir", Path: "/a", Propagation: pod.HostToContainer}), false},
		"mounts in mounts":      {mount(pod.Mount{Volume: "dir", Path: "/a"}, pod.Mount{Volume: "files", Path: "/a/b"}), false},
		"users are in a volume": {mount(pod.Mount{Volume: "dir", Path: "/etc"}), false},
		"a volume is the root":  {mount(pod.Mount{Volume: "dir", Path: "/"}), false},
		"a volume in /dev":      {mount(pod.Mount{Volume: "dir", Path: "/dev/shm"}), false},
		"a volume that is not":  {mount(pod.Mount{Volume: "none", Path: "/a"}), false},
		"a message in a volume": {func(_ *pod.Plan, c *pod.Container) {
			c.Mounts, c.TerminationMessagePath = []pod.Mount{{Volume: "dir", Path: "/a"}}, "/a/m"
		}, false},
		"a variable from a file": {func(_ *pod.Plan, c *pod.Container) {
			c.Vars = []pod.EnvVar{{Name: "V", From: &pod.EnvRef{File: &pod.FileRef{}}}}
		}, false},
		"a variable from a key": {func(_ *pod.Plan, c *pod.Container) {
			c.Vars = []pod.EnvVar{{Name: "V", From: &pod.EnvRef{Key: &pod.KeyRef{}}}}
		}, true},
		"a terminal":            {func(_ *pod.Plan, c *pod.Container) { c.TTY = true }, false},
		"an input":              {func(_ *pod.Plan, c *pod.Container) { c.Stdin = true }, false},
		"privileged":            {func(_ *pod.Plan, c *pod.Container) { c.Privileged = true }, false},
		"hooks of devices":      {func(_ *pod.Plan, c *pod.Container) { c.Hooks = make([]pod.Hook, 1) }, false},
		"an ephemeral one":      {func(_ *pod.Plan, c *pod.Container) { c.Target = "x" }, false},
		"processes seen by all": {func(p *pod.Plan, _ *pod.Container) { p.ShareProcessNamespace = true }, false},
		"the host's processes":  {func(p *pod.Plan, _ *pod.Container) { p.HostPID = true }, false},
		"apart":                 {func(p *pod.Plan, _ *pod.Container) { p.OwnUserNS = true }, false},
		"users of its own":      {func(p *pod.Plan, _ *pod.Container) { p.Users = &pod.IDRange{} }, false},
		"another mounts in there": {func(p *pod.Plan, c *pod.Container) {
			c.Mounts = []pod.Mount{{Volume: "dir", Path: "/a"}}
			p.InitContainers = []pod.Container{{Mounts: []pod.Mount{{Volume: "dir", Path: "/b", Propagation: pod.Bidirectional}}}}
		}, false},
	} {
		plan := &pod.Plan{Volumes: []pod.Volume{{Name: "dir", Kind: pod.EmptyDir}, {Name: "files", Kind: pod.Files}, {Name: "host", Kind: pod.HostPath}}}
		container := &pod.Container{Name: "a", Cwd: "/", TerminationMessagePath: "/dev/termination-log"}
		c.change(plan, container)
		if got := eligible(plan, container, false, false); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A sandbox's first containers, before which nothing runs, are made while there is no network.
func TestPreparableFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pod.Plan, *pod.Container)
		want   bool
	}{
		"nothing special": {func(*pod.Plan, *pod.Container) {}, true},
		"a path of the host, and a part of a volume": {func(_ *pod.Plan, c *pod.Container) {
			c.Mounts = []pod.Mount{{Volume: "host", Path: "/a"}, {Volume: "dir", Path: "/a/b", SubPath: "x"}}
		}, true},
		"propagation": {func(_ *pod.Plan, c *pod.Container) {
			c.Mounts = []pod.Mount{{Volume: "host", Path: "/a", Propagation: pod.Bidirectional}}
		}, false},
		"the pod's address": {func(_ *pod.Plan, c *pod.Container) {
			c.Vars = []pod.EnvVar{{Name: "V", From: &pod.EnvRef{Field: "status.podIP"}}}
		}, false},
		"sysctls":               {func(p *pod.Plan, _ *pod.Container) { p.Sysctls = map[string]string{"net.ipv4.ip_forward": "1"} }, false},
		"processes seen by all": {func(p *pod.Plan, _ *pod.Container) { p.ShareProcessNamespace = true }, false},
	} {
		plan := &pod.Plan{Volumes: []pod.Volume{{Name: "dir", Kind: pod.EmptyDir}, {Name: "host", Kind: pod.HostPath}}}
		container := &pod.Container{Name: "a", Cwd: "/"}
		c.change(plan, container)
		if got := eligible(plan, container, true, true); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Containers after the first are made while there is no network, and the first ones may change volumes before them.
func TestPreparableAfterTheFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pod.Container)
		want   bool
	}{
		"nothing special":   {func(*pod.Container) {}, true},
		"a whole volume":    {func(c *pod.Container) { c.Mounts = []pod.Mount{{Volume: "dir", Path: "/a"}} }, true},
		"a part of one":     {func(c *pod.Container) { c.Mounts = []pod.Mount{{Volume: "dir", Path: "/a", SubPath: "x"}} }, false},
		"the pod's address": {func(c *pod.Container) { c.Vars = []pod.EnvVar{{Name: "V", From: &pod.EnvRef{Field: "status.podIP"}}} }, false},
	} {
		plan := &pod.Plan{Volumes: []pod.Volume{{Name: "dir", Kind: pod.EmptyDir}}}
		container := &pod.Container{Name: "a", Cwd: "/"}
		c.change(container)
		if got := eligible(plan, container, false, true); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
