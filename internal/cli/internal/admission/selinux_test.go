package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
)

// policy is one that knows the types, by the rules of opencontainers/selinux.
func policy(types ...string) host.SELinux {
	return host.SELinux{
		Enabled: true,
		Labels: func(options []string) (string, string, error) {
			p := map[string]string{"user": "system_u", "role": "system_r", "type": "container_t", "level": "s0"}
			for _, o := range options {
				k, v, _ := strings.Cut(o, ":")
				p[k] = v
			}
			return p["user"] + ":" + p["role"] + ":" + p["type"] + ":" + p["level"], p["user"] + ":object_r:container_file_t:" + p["level"], nil
		},
		Layers: func() string { return "system_u:object_r:container_ro_file_t:s0" },
		Try: func(process, _ string, noNewPrivileges bool) error {
			if noNewPrivileges && strings.Contains(process, ":free_t:") {
				return errors.New("the policy does not let processes that gain no privileges change")
			}
			for _, typ := range types {
				if strings.Contains(process, ":"+typ+":") {
					return nil
				}
			}
			return errors.New("the policy has no label " + process)
		},
	}
}

func labelledPod(name string, ofPod, ofSecond *corev1.SELinuxOptions) (*pod.Plan, *corev1.Pod) {
	mounts := []pod.Mount{{Volume: "dir"}, {Volume: "claim"}, {Volume: "host"}}
	plan := &pod.Plan{
		Namespace: "default", Name: name,
		Volumes:        []pod.Volume{{Name: "dir", Kind: pod.EmptyDir}, {Name: "claim", Kind: pod.ClaimVolume}, {Name: "host", Kind: pod.HostPath}},
		InitContainers: []pod.Container{{Name: "first", Mounts: mounts}},
		Containers:     []pod.Container{{Name: "second", Mounts: mounts[1:], NoNewPrivileges: true}, {Name: "third", Privileged: true}},
	}
	p := &corev1.Pod{}
	if ofPod != nil {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: ofPod}
	}
	p.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	p.Spec.Containers = []corev1.Container{{Name: "second"}, {Name: "third"}}
	if ofSecond != nil {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SELinuxOptions: ofSecond}
	}
	return plan, p
}

// TestLabels checks the precedence of a container's options, the pod's and the policy's, the pod's
// categories, spc_t of privileged containers, and the label of files.
func TestLabels(t *testing.T) {
	level := podLevel(&pod.Plan{Namespace: "default", Name: "web"})
	for name, c := range map[string]struct {
		ofPod, ofSecond *corev1.SELinuxOptions
		types           string
		want            string // of first, second and third, then files of the pod, second, the directory and the claim; LEVEL is the pod's own
		wrong           string
	}{
		"the policy's": {types: "container_t spc_t",
			want: "system_u:system_r:container_t:LEVEL system_u:system_r:container_t:LEVEL system_u:system_r:spc_t:LEVEL FILE:LEVEL FILE:LEVEL FILE:LEVEL FILE:s0"},
		"no type for privileged ones": {types: "container_t",
			want: "system_u:system_r:container_t:LEVEL system_u:system_r:container_t:LEVEL - FILE:LEVEL FILE:LEVEL FILE:LEVEL FILE:s0"},
		"a policy without containers": {want: "- - - - - - -"},
		"the pod's level": {ofPod: &corev1.SELinuxOptions{Level: "s0:c1,c2"}, types: "container_t spc_t",
			want: "system_u:system_r:container_t:s0:c1,c2 system_u:system_r:container_t:s0:c1,c2 system_u:system_r:spc_t:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2"},
		"a container's own type and role": {ofPod: &corev1.SELinuxOptions{Level: "s0:c1,c2", Type: "other_t"}, ofSecond: &corev1.SELinuxOptions{Type: "my_t", Role: "my_r"}, types: "my_t other_t",
			want: "system_u:system_r:other_t:s0:c1,c2 system_u:my_r:my_t:s0:c1,c2 system_u:system_r:other_t:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2 FILE:s0:c1,c2"},
		"a type that takes privileges": {ofSecond: &corev1.SELinuxOptions{Type: "free_t"}, types: "container_t free_t", wrong: "container second: securityContext.seLinuxOptions: the policy does not let processes that gain no privileges change"},
		"a volume of two levels": {ofSecond: &corev1.SELinuxOptions{Level: "s0:c1,c2"}, types: "container_t",
			wrong: "volume claim is mounted by the containers first with the label system_u:object_r:container_file_t:LEVEL, and second with the label system_u:object_r:container_file_t:s0:c1,c2"},
		"a pod's unknown type":       {ofPod: &corev1.SELinuxOptions{Type: "none_t"}, wrong: "spec.securityContext.seLinuxOptions: the policy has no label system_u:system_r:none_t:LEVEL"},
		"a container's unknown type": {ofSecond: &corev1.SELinuxOptions{Type: "none_t"}, types: "container_t", wrong: "container second: securityContext.seLinuxOptions: the policy has no label system_u:system_r:none_t:LEVEL"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, p := labelledPod("web", c.ofPod, c.ofSecond)
			err := applySELinux(plan, p, policy(strings.Fields(c.types)...))
			if c.wrong != "" {
				if wrong := strings.ReplaceAll(c.wrong, "LEVEL", level); err == nil || !strings.Contains(err.Error(), wrong) {
					t.Errorf("%v\nwant %s", err, wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			second := plan.Containers[0]
			got := fmt.Sprint(plan.InitContainers[0].Label, ";", second.Label, ";", plan.Containers[1].Label, ";",
				plan.FileLabel, ";", second.FileLabel, ";", plan.Volumes[0].FileLabel, ";", plan.Volumes[1].FileLabel)
			want := strings.NewReplacer("-", "", " ", ";", "FILE", "system_u:object_r:container_file_t", "LEVEL", level).Replace(c.want)
			if got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if (plan.LayerLabel != "") != (second.FileLabel != "") {
				t.Errorf("layers are labelled %q", plan.LayerLabel)
			}
			if plan.Volumes[2].FileLabel != "" {
				t.Error("a directory of the host's is labelled")
			}
		})
	}
}

// TestSharedLabels checks that shared files get no categories if one container has categories of its own.
func TestSharedLabels(t *testing.T) {
	plan, p := labelledPod("web", nil, &corev1.SELinuxOptions{Level: "s0:c1,c2"})
	plan.Volumes = []pod.Volume{{Name: "dir", Kind: pod.Files}, {Name: "claim", Kind: pod.ClaimVolume}}
	plan.Containers[0].Mounts = []pod.Mount{{Volume: "dir"}}
	const want = "system_u:object_r:container_file_t:s0"
	if err := applySELinux(plan, p, policy("container_t", "spc_t")); err != nil || plan.FileLabel != want || plan.Volumes[0].FileLabel != want || plan.Volumes[1].FileLabel != want {
		t.Error(err, plan.FileLabel, plan.Volumes)
	}
}

// TestLabelsWithoutSELinux checks that labels are ignored on a host without SELinux.
func TestLabelsWithoutSELinux(t *testing.T) {
	plan, p := labelledPod("web", &corev1.SELinuxOptions{Type: "none_t"}, nil)
	if err := applySELinux(plan, p, host.SELinux{}); err != nil || plan.FileLabel != "" || plan.Containers[0].Label != "" {
		t.Error(err, plan)
	}
}

// TestPodLevel checks that a pod always gets the same categories, and other pods get others.
func TestPodLevel(t *testing.T) {
	seen := map[string]string{}
	for i := range 4 {
		name := fmt.Sprint("pod-", i)
		level := podLevel(&pod.Plan{Namespace: "default", Name: name})
		if other, taken := seen[level]; taken {
			t.Errorf("%s and %s have %s", name, other, level)
		}
		seen[level] = name
		var low, high int
		if n, err := fmt.Sscanf(level, "s0:c%d,c%d", &low, &high); n != 2 || err != nil || low < 0 || low >= high || high > 1023 {
			t.Error(level)
		}
		if again := podLevel(&pod.Plan{Namespace: "default", Name: name}); again != level {
			t.Error(level, again)
		}
	}
}

// TestDiagnoseSELinux checks that doctor shows the label of containers or why they have none, never as an
// error.
func TestDiagnoseSELinux(t *testing.T) {
	enforcing, silent, none := policy("container_t"), policy("container_t"), policy()
	enforcing.Enforcing = true
	silent.Labels = func([]string) (string, string, error) { return "", "", nil }
	for _, c := range []struct {
		has  host.SELinux
		want host.Finding
	}{
		{host.SELinux{}, host.Finding{Level: host.OK, Detail: "SELinux is not enabled"}},
		{enforcing, host.Finding{Level: host.OK, Detail: "containers have the label system_u:system_r:container_t, with categories of their pod; the policy is enforced"}},
		{policy("container_t"), host.Finding{Level: host.OK, Detail: "containers have the label system_u:system_r:container_t, with categories of their pod; the policy is permissive, so nothing is enforced"}},
		{silent, host.Finding{Level: host.Note, Detail: "containers keep the label of the user's programs: the host's policy has no labels for containers (no contexts/lxc_contexts)"}},
		{none, host.Finding{Level: host.Note, Detail: "containers keep the label of the user's programs: the policy has no label system_u:system_r:container_t:"}},
	} {
		got := SELinuxFinding(c.has)
		if got.Level != c.want.Level || !strings.HasPrefix(got.Detail, c.want.Detail) || (got.Hint == "") != (got.Level == host.OK) {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		if c.want.Level == host.OK && got.Detail != c.want.Detail {
			t.Errorf("%q, want %q", got.Detail, c.want.Detail)
		}
	}
}
