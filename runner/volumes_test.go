package runner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// put makes an object of the pod's namespace.
func (p *testPod) put(o pod.Object) {
	p.t.Helper()
	put(p.t, p, &o)
}

func put(t testing.TB, p *testPod, o *pod.Object) {
	t.Helper()
	o.Namespace, o.UID, o.Revision = "default", "u", o.Revision+1
	if err := p.dirs().PutObject(o); err != nil {
		t.Fatal(err)
	}
}

// allVolumes is one volume of every kind, by name, with a path of the host each in dir.
func allVolumes(t *testing.T, layer, dir string) map[string]pod.Volume {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "host"), 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]pod.Volume{
		"emptyDir":  {Kind: pod.EmptyDir},
		"memory":    {Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20},
		"ephemeral": {Kind: pod.Ephemeral},
		"claim":     {Kind: pod.ClaimVolume, Claim: "data"},
		"hostPath":  {Kind: pod.HostPath, Path: filepath.Join(dir, "host"), PathType: "Directory"},
		"configMap": {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644}}},
		"secret":    {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key", Mode: 0o400}}},
		"pod":       {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "sub/labels", Text: "a=\"b\"", Mode: 0o644}}}}},
		"image":     {Kind: pod.ImageVolume, Layers: []string{layer}},
	}
}

// putObjects makes what allVolumes refers to.
func putObjects(p *testPod) {
	p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 1}}}})
	p.put(pod.Object{Kind: pod.KindSecret, Name: "key", Secret: &pod.Secret{Data: map[string][]byte{"password": []byte("s3cr3t-of-the-pod")}}})
	p.put(pod.Object{Kind: pod.KindClaim, Name: "data", Claim: &pod.Claim{AccessModes: []string{"ReadWriteOnce"}}})
}

// Every kind of volume, writable and not, seen by root and by another user, with and
// without a group of the pod.
func TestVolumes(t *testing.T) {
	l := layer(t)
	dir := t.TempDir()
	all := allVolumes(t, l, dir)
	// What a user sees of a volume: whether it can be written to, its own group and
	// mode, and whether its files can be read.
	const script = `stat -L -c '%u:%g %a' /v; id -G; if echo x 2>/dev/null >/v/$0; then echo rw; else echo ro; fi; cat /v/a /v/password /v/sub/labels /v/bin/no 2>/dev/null; ls -A /v >/dev/null && echo listed`
	writable := []string{"emptyDir", "memory", "ephemeral", "claim", "hostPath"}
	grouped := []string{"emptyDir", "memory", "ephemeral", "claim", "configMap", "secret", "pod"}
	for _, user := range []string{"0", "1000"} {
		for _, group := range []int{0, 2000} {
			for _, readOnly := range []bool{false, true} {
				t.Run(fmt.Sprintf("user=%s group=%d ro=%t", user, group, readOnly), func(t *testing.T) {
					testenv.NoLeaks(t)
					plan := newPlan(nil, nil)
					if group != 0 {
						plan.Group = &pod.Group{ID: group}
					}
					for name, v := range all {
						v.Name = name
						plan.Volumes = append(plan.Volumes, v)
						c := shell(l, strings.ToLower(name), script)
						c.Args, c.User = append(c.Args, user), user
						if group != 0 {
							c.SupplementalGroups = []uint32{uint32(group)}
						}
						c.Mounts = []pod.Mount{{Volume: name, Path: "/v", ReadOnly: readOnly}}
						plan.Containers = append(plan.Containers, c)
					}
					p := prepare(t, plan)
					putObjects(p)
					p.begin()
					if st := p.ended(); st.Phase != pod.Succeeded {
						t.Fatalf("the pod has %s: %+v", st.Phase, st)
					}
					for name := range all {
						out := strings.Split(strings.TrimSpace(p.log(strings.ToLower(name))), "\n")
						mode := map[string]string{"memory": "1777"}[name]
						access, own := "ro", "0:0 "+cmp.Or(mode, "777")
						if slices.Contains(writable, name) && !readOnly && (user == "0" || name != "hostPath") {
							access = "rw"
						}
						switch {
						case name == "hostPath" || name == "image":
							own = "0:0 755"
						case group != 0 && name == "memory":
							own = fmt.Sprintf("0:%d 3777", group)
						case group != 0 && slices.Contains(grouped, name):
							own = fmt.Sprintf("0:%d 2777", group)
						}
						if out[0] != own || out[2] != access || !strings.HasSuffix(out[len(out)-1], "listed") {
							t.Errorf("%s: %q, want %q and %s", name, out, own, access)
						}
						content := map[string]string{"configMap": "1", "pod": `a="b"`}[name]
						if name == "secret" && (user == "0" || group != 0) {
							content = "s3cr3t-of-the-pod"
						}
						if got := strings.TrimSuffix(strings.Join(out[3:], ""), "listed"); got != content {
							t.Errorf("%s: files have %q, want %q", name, got, content)
						}
					}
				})
			}
		}
	}
}
