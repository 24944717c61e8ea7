package kubeapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

// userFile is a kubeconfig that a user has, with fields that podrun does not know.
const userFile = `apiVersion: v1
kind: Config
preferences: {colors: true}
extensions: [{name: tool, extension: {a: 1}}]
current-context: work
clusters: [{name: work, cluster: {server: "https://work:6443", new-field: kept}}]
users: [{name: work, user: {exec: {command: login}}}]
contexts: [{name: work, context: {cluster: work, user: work}}]
`

// TestMergeKubeconfig: a cluster is added to a file, replaced and removed; everything else stays.
func TestMergeKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "config")
	merge := func(server string) {
		t.Helper()
		added, err := UserKubeconfig("podrun-dev", server, []byte("ca"), []byte("certificate"), []byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := MergeKubeconfig(path, added); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	merge("https://127.0.0.1:1") // makes the file
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte(userFile), 0o600); err != nil {
		t.Fatal(err)
	}
	merge("https://127.0.0.1:2")
	merge("https://127.0.0.1:3")
	text := read()
	for want, count := range map[string]int{"https://127.0.0.1:2": 0, "https://127.0.0.1:3": 1, "name: podrun-dev": 3, "current-context: podrun-dev": 1, "new-field: kept": 1, "command: login": 1, "colors: true": 1, "name: tool": 1} {
		if got := strings.Count(text, want); got != count {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, count, text)
		}
	}
	if err := RemoveFromKubeconfig(path, "podrun-dev"); err != nil {
		t.Fatal(err)
	}
	if text = read(); strings.Contains(text, "podrun-dev") || !strings.Contains(text, "new-field: kept") || !strings.Contains(text, `current-context: ""`) {
		t.Errorf("after the removal:\n%s", text)
	}
}

// TestKubeconfigIsLocked: a file that another program has locked, or that is none, is not changed.
func TestKubeconfigIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := RemoveFromKubeconfig(path, "x"); err != nil {
		t.Errorf("without a file: %v", err)
	}
	for _, name := range []string{path, path + ".lock"} { // in this order: without a file nothing is locked
		if err := os.WriteFile(name, []byte("[not a kubeconfig"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := RemoveFromKubeconfig(path, "x")
		if err == nil || !strings.Contains(err.Error(), path) || name != path && !strings.Contains(report.Hint(err), "remove "+path+".lock") {
			t.Errorf("error %v", err)
		}
	}
}
