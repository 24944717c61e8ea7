package objects

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// newStore returns a user's directories without objects, and an environment with what commands print.
func newStore(t *testing.T) (store.Dirs, *cmdutil.Env, *bytes.Buffer) {
	t.Helper()
	base := t.TempDir()
	var out bytes.Buffer
	environ := map[string]string{"HOME": base, "XDG_DATA_HOME": base + "/data", "XDG_RUNTIME_DIR": base + "/run"}
	env := cmdutil.New(func(name string) string { return environ[name] }, nil, nil, &out, &out)
	dirs := store.Dirs{Data: base + "/data/podrun", Runtime: base + "/run/podrun"}
	for _, dir := range []string{dirs.Data, dirs.Runtime} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dirs, env, &out
}

// apply stores the objects of a file, and returns what was printed.
func apply(t *testing.T, dirs store.Dirs, env *cmdutil.Env, out *bytes.Buffer, text string) (string, error) {
	t.Helper()
	list, err := manifest.Load("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	_, _, err = Apply(env, dirs, list, out)
	return out.String(), err
}

const (
	config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '1'}}"
	claim  = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	named  = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: b}, spec: {volumeName: v, storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /data}}}"
)

// TestApply: an object is created, unchanged or configured, with the next revision; a forbidden change stores nothing of
// the file.
func TestApply(t *testing.T) {
	dirs, env, out := newStore(t)
	changed := strings.Replace(config, "'1'", "'2'", 1)
	for _, step := range []struct{ text, want string }{
		{config, "configmap/a created\n"},
		{config, "configmap/a unchanged\n"},
		{changed, "configmap/a configured\n"},
		{strings.Replace(changed, ", data:", ", immutable: true, data:", 1), "configmap/a configured\n"},
	} {
		if got, err := apply(t, dirs, env, out, step.text); got != step.want || err != nil {
			t.Errorf("%s: %q, %v", step.text, got, err)
		}
	}
	got, err := apply(t, dirs, env, out, claim+"\n---\n"+strings.Replace(config, ", data:", ", immutable: true, data:", 1))
	if err == nil || !strings.Contains(err.Error(), "cannot change configmap/a\n") || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := dirs.Object(pod.KindClaim, "default", "a"); err == nil {
		t.Error("another object of the file is stored")
	}
	if o, err := dirs.Object(pod.KindConfigMap, "default", "a"); err != nil || o.Revision != 3 || o.UID == "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestBinding: a claim that names a volume is bound once both are there; a warning says why it is not before.
func TestBinding(t *testing.T) {
	dirs, env, out := newStore(t)
	got, err := apply(t, dirs, env, out, named)
	if err != nil || !strings.HasPrefix(got, "persistentvolumeclaim/b created\n") || !strings.Contains(got, "persistentvolumeclaim/b: is Pending: ") {
		t.Errorf("%q, %v", got, err)
	}
	next, err := manifest.Load("f", []byte(volume))
	if err != nil {
		t.Fatal(err)
	}
	volumeOf, err := PreviewBindings(dirs, next)
	if v := volumeOf("default", "b"); err != nil || v == nil || v.Name != "v" || volumeOf("default", "none") != nil {
		t.Errorf("would be bound to %+v, %v", v, err)
	}
	if got, err = apply(t, dirs, env, out, volume); err != nil || got != "persistentvolume/v created\n" {
		t.Errorf("%q, %v", got, err)
	}
	refs := []kindnames.ObjectRef{{Kind: pod.KindVolume, Namespace: "default", Name: "v"}}
	if err := Delete(context.Background(), env, dirs, refs, nil, printDeleted(env)); err == nil || !strings.Contains(err.Error(), "cannot delete persistentvolume v: it is bound to the persistentvolumeclaim default/b") {
		t.Errorf("a bound volume is deleted: %v", err)
	}
	out.Reset()
	refs = append(refs, kindnames.ObjectRef{Kind: pod.KindClaim, Namespace: "default", Name: "b"})
	if err := Delete(context.Background(), env, dirs, refs, nil, printDeleted(env)); err != nil || out.String() != "persistentvolumeclaim/b deleted\npersistentvolume/v deleted\n" {
		t.Errorf("together: %q, %v", out, err)
	}
}

// TestDeleteInUse: a claim stays as long as a pod refers to it; an object that does not exist is reported by the caller.
func TestDeleteInUse(t *testing.T) {
	dirs, env, out := newStore(t)
	if _, err := apply(t, dirs, env, out, claim); err != nil {
		t.Fatal(err)
	}
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web", Volumes: []pod.Volume{{Name: "v", Kind: pod.ClaimVolume, Claim: "a"}}}
	if err := dirs.Pod("default", "web").Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	refs := []kindnames.ObjectRef{{Kind: pod.KindClaim, Namespace: "default", Name: "a"}, {Kind: pod.KindSecret, Namespace: "default", Name: "none"}, {Kind: pod.KindSecret, Namespace: "default", Name: "../x"}}
	var missing []string
	err := Delete(context.Background(), env, dirs, refs, func(r kindnames.ObjectRef) error { missing = append(missing, r.Name); return nil }, printDeleted(env))
	if err == nil || err.Error() != "cannot delete persistentvolumeclaim a: pod web uses it" || strings.Join(missing, " ") != "none ../x" {
		t.Errorf("%v, missing %v", err, missing)
	}
}

func TestNewUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if a, b := NewUID(), NewUID(); !form.MatchString(a) || a == b {
		t.Errorf("%s, %s", a, b)
	}
}
