package imagegc

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// newUses returns a user's directories, and what uses images there.
func newUses(t *testing.T) (store.Dirs, *InUse) {
	t.Helper()
	base := t.TempDir()
	environ := map[string]string{"HOME": base}
	env := cmdutil.New(func(name string) string { return environ[name] }, nil, nil, io.Discard, io.Discard)
	dirs := store.Dirs{Data: base + "/data", Runtime: base + "/run"}
	return dirs, NewInUse(env, dirs)
}

// TestInUse: pods hold layers, ids and names; workloads hold the images of pods that they have not made yet.
func TestInUse(t *testing.T) {
	dirs, uses := newUses(t)
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web",
		Volumes:        []pod.Volume{{Name: "v", Kind: pod.ImageVolume, Layers: []string{"/l/volume"}}},
		InitContainers: []pod.Container{{Name: "i", Image: "tool:1", ImageID: "sha256:1", Layers: []string{"/l/init"}}},
		Containers:     []pod.Container{{Name: "c", Image: "web:1", ImageID: "sha256:2", Layers: []string{"/l/app"}}}}
	if err := dirs.Pod("default", "web").Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	spec := json.RawMessage(`{"template":{"spec":{"containers":[{"image":"db:1"}],"volumes":[{"image":{"reference":"data:1"}}]}}}`)
	if err := dirs.PutObject(&pod.Object{Kind: pod.KindDeployment, Namespace: "default", Name: "db", UID: "u", Revision: 1, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"/l/volume": true, "/l/init": true, "/l/app": true, "/l/other": false} {
		if got := uses.Layer(dir); got != want {
			t.Errorf("layer %s: %t", dir, got)
		}
	}
	image := uses.Uses().Image
	for name, want := range map[string]bool{"tool:1": true, "web:1": true, "db:1": true, "data:1": true, "other:1": false} {
		if got := image("sha256:9", []string{"docker.io/library/" + name}); got != want {
			t.Errorf("image %s: %t", name, got)
		}
	}
	if !image("sha256:2", nil) || uses.Err != nil {
		t.Errorf("an image without a name is unused; %v", uses.Err)
	}
}

// TestInUseAfterAnError: what cannot be read may use everything.
func TestInUseAfterAnError(t *testing.T) {
	dirs, uses := newUses(t)
	p := dirs.Pod("default", "web")
	if err := p.Create(&pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web"}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(p.VolumesDir()), "plan.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !uses.Layer("/l/other") || !uses.Uses().Image("sha256:9", nil) || uses.Err == nil {
		t.Errorf("unused: %v", uses.Err)
	}
}

// TestInUseByNodes: the pods of a cluster's nodes hold images, which they know by another path.
func TestInUseByNodes(t *testing.T) {
	dirs, uses := newUses(t)
	claim := &pod.Object{Kind: pod.KindClaim, Namespace: "default", Name: "podrun-dev-node-1", UID: "u", Revision: 1, Labels: map[string]string{store.ClusterLabel: "dev"}, Claim: &pod.Claim{}}
	if err := dirs.PutObject(claim); err != nil {
		t.Fatal(err)
	}
	dir, err := dirs.ClaimDir(claim.Namespace, claim.Name)
	if err != nil {
		t.Fatal(err)
	}
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "kube-system", Name: "dns",
		Containers: []pod.Container{{Name: "c", Image: "dns:1", ImageID: "sha256:2", Layers: []string{"/var/lib/podrun/images/layers/a"}}}}
	if err := (store.Dirs{Data: dir, Runtime: t.TempDir()}).Pod("kube-system", "dns").Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if !uses.Layer(dirs.ImagesDir()+"/layers/a") || uses.Layer(dirs.ImagesDir()+"/layers/b") || uses.Err != nil {
		t.Errorf("the layers in use are %v; %v", uses.layers, uses.Err)
	}
}

// TestCollectOfShared: a node of a cluster removes no images.
func TestCollectOfShared(t *testing.T) {
	env := cmdutil.New(func(name string) string { return map[string]string{SharedEnv: "1"}[name] }, nil, nil, io.Discard, io.Discard)
	if err := errors.Join(Collect(env, store.Dirs{}, nil), CollectAll(env, store.Dirs{}, nil)); err != nil {
		t.Error(err)
	}
}
