package build_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// confined builds the one container of a pod with these lines in its spec and in its
// container.
func confined(t *testing.T, spec, container, user string) (*pod.Plan, error) {
	t.Helper()
	o := load(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i, command: [x]"+container+"}]\n"+spec)
	profiles := map[string]json.RawMessage{}
	for _, name := range podutil.LocalSeccompProfiles(o.Pod) {
		profiles[name] = json.RawMessage(`"` + name + `"`)
	}
	return build.Plan(o, map[string]pod.Image{"c": {ID: "sha256:0", User: user}}, build.Options{UID: "u", Seccomp: profiles})
}

func TestConfinement(t *testing.T) {
	for _, c := range []struct {
		name, spec, container string
		ok                    func(*pod.Plan, *pod.Container) bool
	}{
		{"default", "", "", func(p *pod.Plan, c *pod.Container) bool {
			return !p.HostIPC && !c.Privileged && !c.ProcUnmasked && !c.GroupsStrict && !c.SeccompUnconfined && c.Seccomp == nil && len(c.Capabilities) == 12
		}},
		{"privileged", "", ", securityContext: {privileged: true, capabilities: {drop: [ALL]}}", func(_ *pod.Plan, c *pod.Container) bool {
			return c.Privileged && c.SeccompUnconfined && len(c.Capabilities) == 41 && slices.Contains(c.Capabilities, "CAP_SYS_ADMIN") && !c.NoNewPrivileges
		}},
		{"privileged, with a profile that does not count", "", ", securityContext: {privileged: true, seccompProfile: {type: Localhost, localhostProfile: a.json}}",
			func(_ *pod.Plan, c *pod.Container) bool { return c.SeccompUnconfined && c.Seccomp == nil }},
		{"an unmasked /proc", "  hostUsers: false\n", ", securityContext: {procMount: Unmasked}", func(_ *pod.Plan, c *pod.Container) bool { return c.ProcUnmasked && !c.Privileged }},
		{"the host's processes", "  hostPID: true\n", "", func(p *pod.Plan, _ *pod.Container) bool { return p.HostPID && !p.HostIPC && p.OwnUserNS }},
		{"the host's IPC", "  hostIPC: true\n", "", func(p *pod.Plan, _ *pod.Container) bool { return p.HostIPC }},
		{"strict groups", "  securityContext: {supplementalGroups: [5], supplementalGroupsPolicy: Strict}\n", "",
			func(_ *pod.Plan, c *pod.Container) bool {
				return c.GroupsStrict && slices.Equal(c.SupplementalGroups, []uint32{5})
			}},
		{"the pod's profile", "  securityContext: {seccompProfile: {type: Localhost, localhostProfile: d/a.json}}\n", "",
			func(_ *pod.Plan, c *pod.Container) bool { return string(c.Seccomp) == `"d/a.json"` }},
		{"the container's profile wins", "  securityContext: {seccompProfile: {type: Unconfined}}\n", ", securityContext: {seccompProfile: {type: Localhost, localhostProfile: b.json}}",
			func(_ *pod.Plan, c *pod.Container) bool {
				return string(c.Seccomp) == `"b.json"` && !c.SeccompUnconfined
			}},
		{"the pod's AppArmor profile", "  securityContext: {appArmorProfile: {type: Localhost, localhostProfile: tight}}\n", "",
			func(_ *pod.Plan, c *pod.Container) bool { return c.AppArmor == "tight" }},
		{"the container's AppArmor profile wins", "  securityContext: {appArmorProfile: {type: Localhost, localhostProfile: tight}}\n", ", securityContext: {appArmorProfile: {type: RuntimeDefault}}",
			func(_ *pod.Plan, c *pod.Container) bool { return c.AppArmor == pod.AppArmorDefault }},
		{"no AppArmor profile", "  securityContext: {appArmorProfile: {type: Localhost, localhostProfile: tight}}\n", ", securityContext: {appArmorProfile: {type: Unconfined}}",
			func(_ *pod.Plan, c *pod.Container) bool { return c.AppArmor == "" }},
		{"SELinux labels are taken", "  securityContext: {seLinuxChangePolicy: Recursive}\n", ", securityContext: {seLinuxOptions: {level: 's0:c1,c2'}}",
			func(*pod.Plan, *pod.Container) bool { return true }},
	} {
		plan, err := confined(t, c.spec, c.container, "")
		if err != nil || !c.ok(plan, &plan.Containers[0]) {
			t.Errorf("%s: %v\n%+v", c.name, err, plan)
		}
	}
}

// TestNonRootUsersOfImages: an image's user is interpreted as by the kernel.
func TestNonRootUsersOfImages(t *testing.T) {
	const nonRoot = ", securityContext: {runAsNonRoot: true}"
	for user, want := range map[string]string{
		"": "image will run as root", "0": "image will run as root", "0:5": "image will run as root", "00": "image will run as root",
		"root": "non-numeric user", "nginx": "non-numeric user", "4294967296": "invalid user id", "-1": "invalid user id", "99999999999999999999": "non-numeric user",
		"1000": "", "1000:0": "",
	} {
		_, err := confined(t, "", nonRoot, user)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("USER %q: %v, want %q", user, err, want)
		}
	}
}

// TestAppArmorAnnotations: the old annotation of AppArmor has precedence over the pod's profile, and must
// not contradict the container's own.
func TestAppArmorAnnotations(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations: {container.apparmor.security.beta.kubernetes.io/"
	const rest = "}\nspec:\n  containers: [{name: c, image: i, command: [x]"
	for _, c := range []struct{ annotation, container, spec, want, wrong string }{
		{"c: runtime/default", "", "", pod.AppArmorDefault, ""},
		{"c: localhost/tight", "", "  securityContext: {appArmorProfile: {type: Unconfined}}\n", "", "must match"},
		{"c: localhost/tight", "", "", "tight", ""},
		{"c: unconfined", "", "", "", ""},
		{"c: ''", "", "", "", ""},
		{"c: tight", "", "", "", "invalid AppArmor profile name"},
		{"c: localhost/", "", "", "", "invalid AppArmor profile name"},
		{"d: unconfined", "", "", "", "container not found"},
		{"c: localhost/tight", ", securityContext: {appArmorProfile: {type: Localhost, localhostProfile: loose}}", "", "", "must match"},
		{"c: localhost/tight", ", securityContext: {appArmorProfile: {type: Localhost, localhostProfile: tight}}", "", "tight", ""},
	} {
		text := head + c.annotation + rest + c.container + "}]\n" + c.spec
		if c.wrong != "" {
			if reported := strings.Join(mistakes(text), "\n"); !strings.Contains(reported, c.wrong) {
				t.Errorf("%s%s: %q, want %q", c.annotation, c.container, reported, c.wrong)
			}
			continue
		}
		plan, err := build.Plan(load(t, text), map[string]pod.Image{"c": {ID: "sha256:0"}}, build.Options{UID: "u"})
		if err != nil || plan.Containers[0].AppArmor != c.want {
			t.Errorf("%s: %v, %+v", c.annotation, err, plan)
		}
	}
}

// TestHostUsers: hostUsers: false requests a user namespace of the pod's own; settings that are impossible
// with it are refused.
func TestHostUsers(t *testing.T) {
	plan, err := confined(t, "  hostUsers: false\n", "", "")
	if err != nil || plan.Users == nil || !plan.OwnUserNS {
		t.Errorf("%v, %+v", err, plan)
	}
	if plan, err := confined(t, "  hostUsers: true\n", "", ""); err != nil || plan.Users != nil || plan.OwnUserNS {
		t.Errorf("%v, %+v", err, plan)
	}
	for more, want := range map[string]string{
		"  hostNetwork: true\n":                          "spec.hostNetwork: Forbidden: when `hostUsers` is false",
		"  hostIPC: true\n":                              "spec.hostIPC: Forbidden: when `hostUsers` is false",
		"  hostPID: true\n":                              "spec.hostPID",
		"  volumes: [{name: v, hostPath: {path: /x}}]\n": "spec.volumes[0].hostPath: Forbidden: when `hostUsers` is false",
		"  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n":         "spec.volumes[0].persistentVolumeClaim: Forbidden: when `hostUsers` is false",
		"  volumes: [{name: v, emptyDir: {}}, {name: w, hostPath: {path: /x}}]\n": "spec.volumes[1].hostPath",
	} {
		reported := strings.Join(mistakes("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i, command: [x]}]\n  hostUsers: false\n"+more), "\n")
		if !strings.Contains(reported, want) {
			t.Errorf("%s: %q, want %q", more, reported, want)
		}
	}
}
