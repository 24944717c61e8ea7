package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func TestUpdateWritesTheManifestLast(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	p := d.Pod("default", "web")
	if err := p.Create(&pod.Plan{Version: 1, Name: "web", GraceSeconds: 1}, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := p.ReplacePlan(&pod.Plan{Version: 1, Name: "web", GraceSeconds: 2}, []byte("new")); err != nil {
		t.Fatal(err)
	}
	check := func(grace int64, manifest string) {
		t.Helper()
		plan, err := p.Plan()
		if err != nil || plan.GraceSeconds != grace {
			t.Errorf("the plan: %+v, %v", plan, err)
		}
		if got, err := p.Manifest(); err != nil || string(got) != manifest {
			t.Errorf("the manifest: %q, %v", got, err)
		}
	}
	check(2, "new")
	// After a failed write of the manifest, the manifest differs from the wanted one.
	manifest := filepath.Join(p.DataDir(), "manifest.json")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(manifest, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.ReplacePlan(&pod.Plan{Version: 1, Name: "web", GraceSeconds: 3}, []byte("newer")); err == nil {
		t.Error("no error")
	}
	if plan, err := p.Plan(); err != nil || plan.GraceSeconds != 3 {
		t.Errorf("the plan: %+v, %v", plan, err)
	}
}
