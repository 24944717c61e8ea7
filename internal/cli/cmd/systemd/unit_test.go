package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubeDropIns checks that drop-ins of a .kube file apply, and that the most specific one of a name wins.
func TestKubeDropIns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a-b.kube": "1", "kube.d/10.conf": "hidden", "a-.kube.d/10.conf": "2", "a-b.kube.d/20.conf": "3", "a-b.kube.d/notes.txt": "no",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := quadletFile(filepath.Join(dir, "a-b.kube"), "a-b.kube", []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Text)
	}
	if strings.Join(got, " ") != "1 2 3" {
		t.Errorf("%v", got)
	}
}
