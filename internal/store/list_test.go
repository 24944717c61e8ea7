package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// A namespace's directory comes with its first pod and goes with its last one. Listing or creating
// pods meanwhile does not fail.
func TestPodsComeAndGoWhileTheyAreListed(t *testing.T) {
	d := testDirs(t)
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "default"}
	comeAndGo := func(name string) error {
		p := d.Pod("default", name)
		lock, err := p.Lock()
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := p.Create(plan, []byte(`{}`)); err != nil {
			return err
		}
		return p.Remove()
	}
	ends := make(chan error)
	for _, name := range []string{"a", "b"} {
		go func() {
			for range 30 {
				if err := comeAndGo(name); err != nil {
					ends <- err
					return
				}
			}
			ends <- nil
		}()
	}
	for working := 2; working > 0; {
		if _, err := d.Pods(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-ends:
			working--
			if err != nil {
				t.Error(err)
			}
		default:
		}
	}
}

// A search for one pod does not look up the pods after it.
func TestALookForOnePodEndsWithIt(t *testing.T) {
	d := testDirs(t)
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(d.Data, "pods", "default", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(d.Data, "pods", "rubbish"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Pods(); err == nil {
		t.Error("a file is taken for a namespace")
	}
	for p, err := range d.EachPod() {
		if err != nil || p.Name != "a" {
			t.Errorf("%v, %v", p, err)
		}
		break
	}
}
