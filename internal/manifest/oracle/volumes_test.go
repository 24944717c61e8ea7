package oracle

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/capabilities"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/validation"
)

// TestVolumes: defaults and mistakes of every kind of volume and of mounts are the API
// server's, in its words.
func TestVolumes(t *testing.T) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as every API server of today
	t.Cleanup(capabilities.ResetForTest)
	right := 0
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, true}
		p := &corev1.Pod{}
		p.APIVersion, p.Kind, p.Name = "v1", "Pod", "web"
		for i := range rapid.IntRange(1, 3).Draw(t, "volumes") {
			p.Spec.Volumes = append(p.Spec.Volumes, d.volume(string(rune('a'+i))))
		}
		c := corev1.Container{Name: "c", Image: "busybox:1"}
		if d.rarely() {
			c.SecurityContext = &corev1.SecurityContext{Privileged: new(d.maybe())}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "mounts") {
			c.VolumeMounts = append(c.VolumeMounts, d.mount(string(rune('a'+i))))
		}
		p.Spec.Containers = []corev1.Container{c}

		ours := p.DeepCopy()
		defaulting.SetDefaults(ours)
		p = serverDefaults(t, p)
		if diff := cmp.Diff(p, ours, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		theirs := words(serverErrors(t, p))
		said := words(validation.ValidatePod(p))
		theirs = slices.DeleteFunc(theirs, func(e string) bool { return strings.Contains(e, ": PVC name ") }) // of a name that is wrong, too
		if slices.ContainsFunc(said, func(e string) bool { return strings.Contains(e, ": conflicts with the path ") }) {
			return // the kubelet reports it
		}
		for _, list := range [][]string{theirs, said} { // the API server does not always report which
			for i := range list {
				list[i] = whichMount.ReplaceAllString(list[i], "volumeMounts.$1:")
				list[i] = strings.Replace(list[i], `, "metadata.labels['KEY']", "metadata.annotations['KEY']"`, "", 1) // it does not report these
				list[i] = sameFile.ReplaceAllString(list[i], "projected: two files of one path")
				list[i] = whichItem.ReplaceAllString(list[i], "")
				list[i] = strings.Replace(list[i], ".downwarAPI:", ".downwardAPI:", 1) // its mistake
			}
			slices.Sort(list)
		}
		if len(theirs) > 1 { // of two invalid paths, podrun does not report that they are equal
			const two = ": two files of one path"
			theirs = slices.DeleteFunc(theirs, func(e string) bool { return strings.HasSuffix(e, two) })
			said = slices.DeleteFunc(said, func(e string) bool { return strings.HasSuffix(e, two) })
		}
		if diff := cmp.Diff(slices.Compact(theirs), slices.Compact(said), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if len(theirs) == 0 {
			right++
		}
	})
	if right == 0 {
		t.Error("no pod was right")
	}
}

// sameFile matches messages for projected volumes, in which the API server names an object, and podrun the
// file.
var sameFile = regexp.MustCompile(`projected.*: conflicting duplicate paths`)

var whichItem = regexp.MustCompile(`\.items(\[\d+\])?`)

var whichMount = regexp.MustCompile(`volumeMounts\[\d+\]\.(\w+):`)

func (d draw) mount(name string) corev1.VolumeMount {
	m := corev1.VolumeMount{Name: d.often(name, "", "z"), MountPath: d.often("/"+name, "", "/same", "/x:y", "/x:y"), ReadOnly: d.maybe()}
	if d.rarely() {
		m.SubPath = d.one("x", "x/y", "/x", "..", "x/../y", "..x", "x/..")
	}
	if d.rarely() {
		m.SubPathExpr = d.one("$(A)", "$(A)/x", "/$(A)", "../$(A)", "x")
	}
	if d.rarely() {
		m.MountPropagation = new(corev1.MountPropagationMode(d.one("None", "HostToContainer", "Bidirectional", "Both", "")))
	}
	if d.rarely() {
		m.RecursiveReadOnly = new(corev1.RecursiveReadOnlyMode(d.one("Disabled", "Enabled", "IfPossible", "Always", "")))
	}
	return m
}

// volume returns a volume of any kind that podrun supports, or of two kinds.
func (d draw) volume(name string) corev1.Volume {
	v := corev1.Volume{Name: d.often(name, "a", "", "A", "a.b", "a/b")}
	d.source(&v)
	if d.rarely() {
		d.source(&v)
	}
	return v
}

func (d draw) source(v *corev1.Volume) {
	switch d.number(0, 1, 2, 3, 4, 5, 6, 7, 8) {
	case 0:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMedium(d.one("", "Memory"))}
		if d.maybe() {
			v.EmptyDir.SizeLimit = new(resource.MustParse(d.one("1Mi", "0", "-1")))
		}
	case 1:
		v.HostPath = &corev1.HostPathVolumeSource{Path: d.often("/a", "", "/a/../b", "/..a", "/a:b", "/")}
		if d.maybe() {
			v.HostPath.Type = new(corev1.HostPathType(d.often("Directory", "", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice", "Mine")))
		}
	case 2:
		v.Secret = &corev1.SecretVolumeSource{SecretName: d.object(), Items: apart(d.items(), func(i corev1.KeyToPath) string { return i.Path }), DefaultMode: d.mode()}
		v.Secret.Optional = d.flag()
	case 3:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{Items: apart(d.items(), func(i corev1.KeyToPath) string { return i.Path }), DefaultMode: d.mode(), Optional: d.flag()}
		v.ConfigMap.Name = d.object()
	case 4:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.often("data", "", "web-a"), ReadOnly: d.maybe()}
	case 5:
		v.DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: apart(d.fields(), func(f corev1.DownwardAPIVolumeFile) string { return f.Path }), DefaultMode: d.mode()}
	case 6:
		v.Projected = &corev1.ProjectedVolumeSource{DefaultMode: d.mode()}
		for range rapid.IntRange(0, 3).Draw(d.T, "sources") {
			v.Projected.Sources = append(v.Projected.Sources, d.projection())
		}
	case 7:
		v.Image = &corev1.ImageVolumeSource{Reference: d.often("busybox:1", "busybox", "a:latest@sha256:"+digest), PullPolicy: corev1.PullPolicy(d.often("", "Always", "Never", "IfNotPresent", "Mine"))}
	case 8:
		v.Ephemeral = &corev1.EphemeralVolumeSource{}
		v.Ephemeral.VolumeClaimTemplate = &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, // claims' mistakes are drawn in TestValidateClaims
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}}
	}
}

func (d draw) projection() corev1.VolumeProjection {
	var s corev1.VolumeProjection
	if d.maybe() {
		s.Secret = &corev1.SecretProjection{Items: d.items(), Optional: d.flag()}
		s.Secret.Name = d.object()
	}
	if d.maybe() {
		s.ConfigMap = &corev1.ConfigMapProjection{Items: d.items(), Optional: d.flag()}
		s.ConfigMap.Name = d.object()
	}
	if d.maybe() {
		s.DownwardAPI = &corev1.DownwardAPIProjection{Items: d.fields()}
	}
	return s
}

// object returns a mostly valid name of an object. Mistakes that the API server finds when it looks for the
// object are reported by podrun at once, in its own words.
func (d draw) object() string { return d.often("web", "a.b", "") }

func (d draw) flag() *bool {
	if d.maybe() {
		return nil
	}
	return new(d.maybe())
}

func (d draw) mode() *int32 {
	if d.maybe() {
		return nil
	}
	return new(int32(d.number(0o644, 0, 0o777, 0o1777, -1)))
}

func (d draw) path() string {
	return d.often(d.one("a", "b", "c/d", "e/f/g"), "", "/a", "..", "../a", "a/../b", "..a", "a/..b")
}

func (d draw) items() []corev1.KeyToPath {
	var list []corev1.KeyToPath
	for range rapid.IntRange(0, 2).Draw(d.T, "items") {
		list = append(list, corev1.KeyToPath{Key: d.often("k", ""), Path: d.path(), Mode: d.mode()})
	}
	return list
}

func (d draw) fields() []corev1.DownwardAPIVolumeFile {
	var list []corev1.DownwardAPIVolumeFile
	for range rapid.IntRange(0, 2).Draw(d.T, "fields") {
		f := corev1.DownwardAPIVolumeFile{Path: d.path(), Mode: d.mode()}
		if d.maybe() {
			f.FieldRef = &corev1.ObjectFieldSelector{APIVersion: d.often("", "v1", "v2"), FieldPath: d.one("metadata.name", "metadata.labels", "metadata.annotations",
				"metadata.labels['a']", "metadata.annotations['a b']", "status.podIP", "spec.nodeName", "metadata.uid", "")}
		}
		if d.maybe() {
			f.ResourceFieldRef = &corev1.ResourceFieldSelector{ContainerName: d.often("c", ""), Resource: d.resourceName()}
			if f.ResourceFieldRef.ContainerName == "" { // the API server checks no further
				f.ResourceFieldRef.Resource = "limits.cpu"
			}
			if d.maybe() {
				f.ResourceFieldRef.Divisor = resource.MustParse(d.one("1", "1m", "0", "1Mi", "10m"))
			}
		}
		list = append(list, f)
	}
	return list
}

// apart removes files of the same path, which the API server checks in projected volumes only.
func apart[T any](list []T, path func(T) string) []T {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(item T) bool {
		p := path(item)
		defer func() { seen[p] = true }()
		return seen[p]
	})
}
