package podinit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// The supervisor removes everything whose removal takes the pod's user namespace. Only if something
// is left does RemovePod run a program that enters the namespace.
func TestRemovePod(t *testing.T) {
	for _, c := range []struct {
		name    string
		leave   func(store.Pod) string // prepares the remains of the supervisor
		started bool                   // RemovePod starts the program
	}{
		{"nothing", func(store.Pod) string { return "" }, false},
		{"a root file system", store.Pod.RootfsDir, true},
		{"a volume", store.Pod.VolumesDir, true},
		{"nobody knows", func(p store.Pod) string { os.Remove(filepath.Join(p.RuntimeDir(), "status.json")); return "" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
			p := d.Pod("default", "web")
			text := []byte(`{"version": 1, "phase": "Succeeded"}`)
			for _, dir := range []string{p.DataDir(), p.RuntimeDir()} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(p.RuntimeDir(), "status.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if dir := c.leave(p); dir != "" {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := podinit.RemovePod("/nonexistent/program", d, p)
			if (err != nil) != c.started {
				t.Errorf("RemovePod = %v", err)
			}
			if _, serr := os.Stat(p.DataDir()); os.IsNotExist(serr) != (err == nil) {
				t.Errorf("the pod's directory: %v after %v", serr, err)
			}
		})
	}
}
