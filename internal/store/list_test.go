package store

import (
	"testing"

	"github.com/podrun/podrun/pod"
)

// A namespace's directory comes with its first pod and goes with its last one: who
// lists pods, or makes one, meanwhile takes no harm.
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
