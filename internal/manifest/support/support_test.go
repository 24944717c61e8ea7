package support

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
)

// TestEveryFieldHasARow walks the Go types of a Pod: it fails for a field without a row, and for a row
// without a field. So no field is silently ignored in any later version of Kubernetes.
func TestEveryFieldHasARow(t *testing.T) {
	for _, object := range []any{
		corev1.Pod{}, corev1.ConfigMap{}, corev1.Secret{}, corev1.PersistentVolumeClaim{}, corev1.PersistentVolume{}, corev1.Service{}, corev1.Namespace{}, networkingv1.NetworkPolicy{},
		appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, batchv1.Job{}, batchv1.CronJob{},
	} {
		typ := reflect.TypeOf(object)
		t.Run(typ.Name(), func(t *testing.T) { everyFieldHasARow(t, typ) })
	}
}

func everyFieldHasARow(t *testing.T, typ reflect.Type) {
	rows, visited := newTable(tableOf(typ.Name())), map[string]bool{}
	s := apiutil.FieldCache{}
	var visit func(typ reflect.Type, path string)
	visit = func(typ reflect.Type, path string) {
		for name, ft := range s.Fields(typ) {
			prefix := dot(path, name)
			r, ok := rows.find(prefix)
			if !ok {
				t.Errorf("%s has no row: give it one in support_*.go", prefix)
				continue
			}
			visited[r.Path] = true
			if _, listed := rows[prefix]; listed {
				visited[prefix] = true
			}
			if r.Support != Supported {
				continue // applies to everything below
			}
			switch ft = apiutil.DerefType(ft); {
			case apiutil.UnmarshalsItself(ft):
			case ft.Kind() == reflect.Struct:
				visit(ft, prefix)
			case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
				visit(ft.Elem(), prefix+"[]")
			}
		}
	}
	visit(typ, "")
	for path, r := range rows {
		of, _, keyed := strings.Cut(path, "[")
		if keyed && strings.HasSuffix(path, "]") && !strings.HasSuffix(path, "[]") {
			of = path[:strings.LastIndexByte(path, '[')]
			if !visited[of] {
				t.Errorf("%s: there is no map %s", path, of)
			}
			continue
		}
		if !visited[path] {
			t.Errorf("%s: there is no such field, or a row above speaks for it", path)
		}
		if r.Path != path {
			t.Errorf("%s is found as %s", path, r.Path)
		}
	}
}

func TestRowsAreValid(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range podTable() {
		if seen[r.Path] {
			t.Errorf("%s has two rows", r.Path)
		}
		seen[r.Path] = true
		if !slices.Contains([]Level{Supported, Accepted, Refused}, r.Support) {
			t.Errorf("%s: support %q", r.Path, r.Support)
		}
		if r.Support != Supported && r.Note == "" {
			t.Errorf("%s: a field that is not supported has a note", r.Path)
		}
		if r.Support == Refused && len(r.Only) > 0 {
			t.Errorf("%s: only of a refused field: write supported, only", r.Path)
		}
	}
}

func TestRowOf(t *testing.T) {
	path := Field{Support: Supported, Only: []string{"metadata.name", "metadata.labels['*']"}}
	for value, want := range map[string]Level{
		"metadata.name":          Supported,
		"metadata.labels['a/b']": Supported,
		"metadata.labels":        Refused,
		"metadata.labels['a":     Refused,
		"metadata.namex":         Refused,
		"status.podIP":           Refused,
	} {
		if got := path.levelFor(value); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

func TestFindings(t *testing.T) {
	p := manifesttest.Decode(t, `apiVersion: v1
kind: Pod
metadata: {name: p, labels: {a: b}, annotations: {x/y: z, podrun.dev/pod-limits: kubelet, podrun.dev/other: "1"}}
spec:
  hostUsers: true
  automountServiceAccountToken: false
  tolerations: [{operator: Exists}]
  hostNetwork: false
  securityContext: {}
  initContainers:
  - {name: s, image: i, restartPolicy: Always, startupProbe: {}}
  - {name: i, image: i, restartPolicy: OnFailure}
  containers:
  - name: c
    image: i
    tty: false
    securityContext: {privileged: false}
    resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 2Gi}}
    volumeMounts: [{name: v, mountPath: /v, readOnly: true, mountPropagation: None}]
  volumes: [{name: v, emptyDir: {}}, {name: w, hostPath: {path: /}}]
status: {phase: Running}
`)
	type short struct {
		Path    string
		Support Level
	}
	var got []short
	for _, f := range FindPod(p) {
		got = append(got, short{f.Path, f.Support})
	}
	want := []short{
		{"kind", Supported}, {"apiVersion", Supported},
		{"metadata.name", Supported}, {"metadata.labels", Supported},
		{"metadata.annotations[podrun.dev/other]", Refused},
		{"metadata.annotations[podrun.dev/pod-limits]", Supported},
		{"metadata.annotations", Supported},
		{"spec.volumes[0].name", Supported}, {"spec.volumes[0].emptyDir", Supported},
		{"spec.volumes[1].name", Supported}, {"spec.volumes[1].hostPath.path", Supported},
		{"spec.initContainers[0].name", Supported}, {"spec.initContainers[0].image", Supported},
		{"spec.initContainers[0].restartPolicy", Supported}, {"spec.initContainers[0].startupProbe", Supported},
		{"spec.initContainers[1].name", Supported}, {"spec.initContainers[1].image", Supported},
		{"spec.initContainers[1].restartPolicy", Supported},
		{"spec.containers[0].name", Supported}, {"spec.containers[0].image", Supported},
		{"spec.containers[0].resources.limits[ephemeral-storage]", Supported},
		{"spec.containers[0].resources.requests[cpu]", Supported},
		{"spec.containers[0].resources.requests[ephemeral-storage]", Accepted},
		{"spec.containers[0].volumeMounts[0].name", Supported},
		{"spec.containers[0].volumeMounts[0].readOnly", Supported},
		{"spec.containers[0].volumeMounts[0].mountPath", Supported},
		{"spec.containers[0].volumeMounts[0].mountPropagation", Supported},
		{"spec.containers[0].securityContext.privileged", Supported},
		{"spec.automountServiceAccountToken", Supported},
		{"spec.securityContext", Supported},
		{"spec.tolerations", Accepted},
		{"spec.hostUsers", Supported},
		{"status", Accepted},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedIsRefused: Load enforces every row that refuses, for a value of its field that Kubernetes would
// accept.
func TestRefusedIsRefused(t *testing.T) {
	for _, r := range podTable() {
		if r.Support != Refused || strings.HasPrefix(r.Path, "metadata") || strings.HasSuffix(r.Path, "]") {
			continue
		}
		p := &corev1.Pod{}
		set(reflect.ValueOf(p).Elem(), strings.Split(strings.ReplaceAll(r.Path, "[]", ".[]"), "."))
		found := FindPod(p)
		want := strings.ReplaceAll(r.Path, "[]", "[0]")
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Path == want && f.Support == Refused }) {
			t.Errorf("%s: not refused in %+v", r.Path, found)
		}
	}
}

// set sets the field at a path to some value other than zero.
func set(v reflect.Value, steps []string) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), steps)
		return
	}
	if len(steps) > 0 && steps[0] == "[]" {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0), steps[1:])
		return
	}
	if len(steps) > 0 {
		for i := range v.NumField() {
			name, inline := apiutil.JSONName(v.Type().Field(i))
			switch {
			case name == steps[0]:
				set(v.Field(i), steps[1:])
			case inline:
				set(v.Field(i), steps)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("a")
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}
