package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// defaultCaps are the capabilities of a container that requests none.
var defaultCaps = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
	"CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

var testOptions = build.Options{UID: "uid-1", NodeName: "node-1", NodeMemory: gib}

// mustBuild makes the plan of a one-pod file whose containers all have one image.
func mustBuild(t *testing.T, text string, image pod.Image) *pod.Plan {
	t.Helper()
	plan, err := tryBuild(t, text, image)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func tryBuild(t *testing.T, text string, image pod.Image) (*pod.Plan, error) {
	t.Helper()
	o := load(t, text)
	images := map[string]pod.Image{}
	for _, use := range podutil.Images(o.Pod) {
		images[use.Container] = image
	}
	before := o.Pod.DeepCopy()
	plan, err := build.Plan(o, images, testOptions)
	if diff := cmp.Diff(before, o.Pod); diff != "" {
		t.Errorf("Build changed the pod:\n%s", diff)
	}
	return plan, err
}

// TestBuild compares one whole plan.
func TestBuild(t *testing.T) {
	image := pod.Image{
		Name: "docker.io/library/web:1", ID: "sha256:1", Digest: "sha256:2", Layers: []string{"/l/1", "/l/2"},
		Entrypoint: []string{"/entry"}, Cmd: []string{"cmd"}, Env: []string{"PATH=/bin"}, User: "web", WorkingDir: "/srv", StopSignal: "SIGQUIT",
	}
	plan := mustBuild(t, `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 5
  activeDeadlineSeconds: 60
  shareProcessNamespace: true
  hostname: www
  automountServiceAccountToken: false
  securityContext:
    supplementalGroups: [10, 20]
    sysctls: [{name: net/ipv4/tcp_syncookies, value: "1"}]
  initContainers:
  - {name: proxy, image: "web:1", restartPolicy: Always}
  containers:
  - name: app
    image: web:1
    args: [--port, $(PORT)]
    env: [{name: PORT, value: "80"}]
    resources: {limits: {cpu: 500m, memory: 64Mi}}
    terminationMessagePath: /dev/log
    terminationMessagePolicy: FallbackToLogsOnError
    securityContext:
      runAsUser: 1000
      runAsGroup: 2000
      runAsNonRoot: true
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL], add: [net_bind_service, CHOWN]}
      seccompProfile: {type: Unconfined}
    volumeMounts:
    - {name: mem, mountPath: /a/b/c}
    - {name: disk, mountPath: a, readOnly: true}
    - {name: disk, mountPath: /a/b/}
  volumes:
  - {name: disk}
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
  - {name: small, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: unused, emptyDir: {medium: Memory}}
`, image)
	all := pod.Resources{CPURequest: 500, CPULimit: 500, MemoryRequest: 64 * mib, MemoryLimit: 64 * mib}
	want := &pod.Plan{
		Version: pod.PlanVersion, Namespace: "shop", Name: "web", UID: "uid-1", Hostname: "www",
		RestartPolicy: pod.RestartOnFailure, GraceSeconds: 5, ActiveDeadlineSeconds: 60, ShareProcessNamespace: true, OwnUserNS: true, ServiceLinks: true,
		QOSClass: "Burstable", Resources: all,
		Sysctls: map[string]string{"net.ipv4.tcp_syncookies": "1"},
		Volumes: []pod.Volume{
			{Name: "disk", Kind: pod.EmptyDir},
			{Name: "mem", Kind: pod.EmptyDirMemory, SizeLimit: 64 * mib},
			{Name: "small", Kind: pod.EmptyDirMemory, SizeLimit: mib},
			{Name: "unused", Kind: pod.EmptyDirMemory, SizeLimit: 64 * mib},
		},
		InitContainers: []pod.Container{{
			Name: "proxy", Image: "web:1", ImageID: "sha256:1", Layers: []string{"/l/1", "/l/2"}, Sidecar: true,
			Args: []string{"/entry", "cmd"}, Env: []string{"PATH=/bin", "HOSTNAME=www"}, Cwd: "/srv", User: "web",
			SupplementalGroups: []uint32{10, 20}, StopSignal: "SIGQUIT", Capabilities: defaultCaps,
			Resources: all, OOMScoreAdj: 938,
			TerminationMessagePath: "/dev/termination-log", TerminationMessageFrom: pod.MessageFile,
		}},
		Containers: []pod.Container{{
			Name: "app", Image: "web:1", ImageID: "sha256:1", Layers: []string{"/l/1", "/l/2"},
			Args: []string{"/entry", "--port", "$(PORT)"}, Env: []string{"PATH=/bin", "HOSTNAME=www"}, Vars: []pod.EnvVar{{Name: "PORT", Value: "80"}}, Cwd: "/srv", User: "1000:2000",
			SupplementalGroups: []uint32{10, 20}, NonRoot: true, StopSignal: "SIGQUIT",
			ReadOnlyRoot: true, NoNewPrivileges: true, SeccompUnconfined: true,
			Capabilities: []string{"CAP_CHOWN", "CAP_NET_BIND_SERVICE"},
			Mounts:       []pod.Mount{{Volume: "disk", Path: "/a", ReadOnly: true}, {Volume: "disk", Path: "/a/b"}, {Volume: "mem", Path: "/a/b/c"}},
			Resources:    all, OOMScoreAdj: 938,
			TerminationMessagePath: "/dev/log", TerminationMessageFrom: pod.MessageFallbackToLogs,
		}},
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Error(diff)
	}
}

func TestArgs(t *testing.T) {
	full := pod.Image{Entrypoint: []string{"/entry", "$(A)"}, Cmd: []string{"cmd", "$(A)"}}
	for _, test := range []struct {
		name, fields string
		image        pod.Image
		want         []string
	}{
		{"the image's", "", full, []string{"/entry", "$(A)", "cmd", "$(A)"}},
		{"args replace CMD", "args: [x]", full, []string{"/entry", "$(A)", "x"}},
		{"command replaces ENTRYPOINT and drops CMD", "command: [x]", full, []string{"x"}},
		{"both", "command: [x], args: [z]", full, []string{"x", "z"}},
		{"expanded", "command: [x, $(A), $$(A), $(B)], args: [$(A)], env: [{name: A, value: a}]", full, []string{"x", "a", "$(A)", "$(B)", "a"}},
		{"CMD alone", "", pod.Image{Cmd: []string{"cmd"}}, []string{"cmd"}},
		{"args alone", "args: [x]", pod.Image{Cmd: []string{"cmd"}}, []string{"x"}},
	} {
		plan := mustBuild(t, podYAML(one(test.fields)), test.image)
		plan.ServiceLinks = false
		e, err := environ.Resolve(plan, &plan.Containers[0], environ.Sources{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, e.Args); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestNothingToRun(t *testing.T) {
	_, err := tryBuild(t, podYAML("{initContainers: [{name: i, image: a}], containers: [{name: c, image: b}]}"), pod.Image{})
	want := "pod.yaml: document 1, line 4: spec.containers[0]: container c has nothing to run: give it a command, its image b has neither ENTRYPOINT nor CMD\n" +
		"pod.yaml: document 1, line 4: spec.initContainers[0]: container i has nothing to run: give it a command, its image a has neither ENTRYPOINT nor CMD"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := tryBuild(t, podYAML(one("command: ['']")), pod.Image{}); err == nil {
		t.Error("an empty command is taken")
	}
}

func TestZeroByteInImage(t *testing.T) {
	for _, image := range []pod.Image{
		{Entrypoint: []string{"a\x00"}}, {Cmd: []string{"a", "\x00"}},
		{Cmd: []string{"a"}, User: "\x00"}, {Cmd: []string{"a"}, WorkingDir: "/\x00"},
	} {
		if _, err := tryBuild(t, podYAML(one("")), image); err == nil || !strings.Contains(err.Error(), "container c cannot run: the configuration of its image ") {
			t.Errorf("%+v: %v", image, err)
		}
	}
	mustBuild(t, podYAML(one("command: [a], workingDir: /")), pod.Image{Entrypoint: []string{"\x00"}, WorkingDir: "\x00"}) // not used
}

func TestImageNotLookedUp(t *testing.T) {
	if _, err := build.Plan(load(t, podYAML(one(""))), nil, testOptions); err == nil || !strings.Contains(err.Error(), "build container c") {
		t.Errorf("got %v", err)
	}
}

func TestUser(t *testing.T) {
	who := `(pod: "p_default(uid-1)", container: c)`
	for _, test := range []struct{ name, image, pod, container, want, err string }{
		{name: "root by default", want: ""},
		{name: "the image's spelling", image: "nginx:www", want: "nginx:www"},
		{name: "the pod's", image: "nginx", pod: "runAsUser: 5", want: "5"},
		{name: "the container's first", image: "nginx", pod: "runAsUser: 5, runAsGroup: 6", container: "runAsUser: 7", want: "7:6"},
		{name: "a group for the image's user", image: "nginx:www", pod: "runAsGroup: 6", want: "nginx:6"},
		{name: "a group for root", pod: "runAsGroup: 6", want: "0:6"},
		{name: "non-root, by the manifest", image: "0", pod: "runAsNonRoot: true", container: "runAsUser: 7", want: "7"},
		{name: "non-root, by the image's number", image: "1000:0", pod: "runAsNonRoot: true", want: "1000:0"},
		{name: "the container may lift it", image: "root", pod: "runAsNonRoot: true", container: "runAsNonRoot: false", want: "root"},
		{name: "non-root, but zero", pod: "runAsNonRoot: true", container: "runAsUser: 0", err: "container's runAsUser breaks non-root policy " + who},
		{name: "non-root, but the image is root", pod: "runAsNonRoot: true", err: "container has runAsNonRoot and image will run as root " + who},
		{name: "non-root, but the image says 0", image: "0:5", pod: "runAsNonRoot: true", err: "container has runAsNonRoot and image will run as root " + who},
		{name: "non-root, and a name", image: "nginx", pod: "runAsNonRoot: true", err: "container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root " + who},
		{name: "non-root, and a number that is none", image: "4294967296", pod: "runAsNonRoot: true", err: "container has runAsNonRoot and image has an invalid user id (4294967296). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive " + who},
	} {
		spec := "{securityContext: {" + test.pod + "}, containers: [{name: c, image: i, securityContext: {" + test.container + "}}]}"
		plan, err := tryBuild(t, podYAML(spec), pod.Image{Cmd: []string{"run"}, User: test.image})
		switch {
		case test.err != "":
			if want := "pod.yaml: document 1, line 4: spec.containers[0]: " + test.err; err == nil || err.Error() != want {
				t.Errorf("%s: got error %v\nwant %s", test.name, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case plan.Containers[0].User != test.want:
			t.Errorf("%s: %q, want %q", test.name, plan.Containers[0].User, test.want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	for _, test := range []struct {
		caps string
		n    int
		has  string
		not  string
	}{
		{"{}", 12, "CAP_NET_RAW", "CAP_SYS_ADMIN"},
		{"{add: [SYS_ADMIN]}", 13, "CAP_SYS_ADMIN", "CAP_ALL"},
		{"{drop: [NET_RAW]}", 11, "CAP_CHOWN", "CAP_NET_RAW"},
		{"{add: [ALL]}", 41, "CAP_CHECKPOINT_RESTORE", "CAP_ALL"},
		{"{drop: [ALL]}", 0, "", "CAP_CHOWN"},
		{"{drop: [ALL], add: [chown]}", 1, "CAP_CHOWN", "CAP_KILL"},
		{"{add: [ALL], drop: [SYS_ADMIN]}", 40, "CAP_NET_ADMIN", "CAP_SYS_ADMIN"},
		{"{add: [KILL, KILL], drop: [KILL]}", 11, "CAP_CHOWN", "CAP_KILL"},
	} {
		list := mustBuild(t, podYAML(one("securityContext: {capabilities: "+test.caps+"}")), pod.Image{Cmd: []string{"run"}}).Containers[0].Capabilities
		all := " " + strings.Join(list, " ") + " "
		if len(list) != test.n || test.has != "" && !strings.Contains(all, " "+test.has+" ") || strings.Contains(all, " "+test.not+" ") {
			t.Errorf("%s: %d:%s", test.caps, len(list), all)
		}
	}
}

func TestHostname(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, want := range map[string]string{
		"p":              "p",
		"p.q":            "p.q",
		a(63):            a(63),
		a(64):            a(63),
		a(61) + ".a.bc":  a(61) + ".a",
		a(62) + ".b":     a(62),
		a(60) + "--.b.c": a(60),
	} {
		text := strings.Replace(podYAML(one("")), "name: p", "name: "+name, 1)
		if got := podutil.Hostname(decodePod(t, text)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestCwd(t *testing.T) {
	for _, test := range []struct{ fields, image, want string }{
		{"", "", "/"},
		{"", "/srv", "/srv"},
		{"", "srv", "/srv"},
		{"workingDir: /w", "/srv", "/w"},
	} {
		plan := mustBuild(t, podYAML(one(test.fields)), pod.Image{Cmd: []string{"run"}, WorkingDir: test.image})
		if got := plan.Containers[0].Cwd; got != test.want {
			t.Errorf("%q in an image of %q: %s, want %s", test.fields, test.image, got, test.want)
		}
	}
}
