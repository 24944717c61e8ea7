package sandbox

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/pod"
)

// asRoot sets RootIsHostRoot until the test ends.
func asRoot(t *testing.T, root bool) {
	before := RootIsHostRoot
	RootIsHostRoot = func() bool { return root }
	t.Cleanup(func() { RootIsHostRoot = before })
}

// Denied capabilities depend on the container's user namespace and cgroup only; root's privileged
// containers are root.
func TestWithheldCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		root, privileged, cgroup bool
		user, want               string
	}{
		"of all pods":                 {want: "CAP_CHOWN CAP_MKNOD"}, // opens no device in a user namespace
		"of all pods, privileged":     {privileged: true, want: "CAP_CHOWN CAP_MKNOD"},
		"of its own":                  {user: "/ns", want: "CAP_CHOWN CAP_MKNOD CAP_SYS_PTRACE"},
		"root":                        {root: true, want: "CAP_CHOWN"},
		"root, with a devices cgroup": {root: true, cgroup: true, want: "CAP_CHOWN CAP_MKNOD"},
		"root, privileged":            {root: true, privileged: true, want: "CAP_CHOWN CAP_MKNOD CAP_SYS_PTRACE"},
	} {
		t.Run(name, func(t *testing.T) {
			asRoot(t, test.root)
			all := pod.Container{Name: "c", Privileged: test.privileged, Capabilities: []string{"CAP_CHOWN", "CAP_MKNOD", "CAP_SYS_PTRACE"}}
			s := &Sandbox{Plan: &pod.Plan{Containers: []pod.Container{all}}, Namespaces: Namespaces{User: test.user}}
			if test.cgroup {
				s.Cgroup = &cgroups.Pod{}
			}
			if got := strings.Join(s.WithoutDenied(&all).Capabilities, " "); got != test.want {
				t.Errorf("it gets %s, want %s", got, test.want)
			}
			if s.warnCapabilities(); len(s.Warnings()) != 3-len(strings.Fields(test.want)) {
				t.Errorf("warnings %q", s.Warnings())
			}
			if len(all.Capabilities) != 3 {
				t.Error("the plan has changed")
			}
		})
	}
}

// Mappings whose root is root outside of the user namespace, too.
func TestKeepsRoot(t *testing.T) {
	for uidMap, want := range map[string]bool{
		"         0          0 4294967295\n": true, "0 1000 1\n1 100000 65536\n": false, "0 100000 65536\n": false, "": true, "0": true,
	} {
		if mapKeepsRoot(uidMap) != want {
			t.Errorf("%q: root is root outside: want %t", uidMap, want)
		}
	}
}
