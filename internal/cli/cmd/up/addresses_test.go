package up_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestManifestsOfDirectoriesAndURLs checks that a directory stands for its manifests, and a URL for its
// content.
func TestManifestsOfDirectoriesAndURLs(t *testing.T) {
	h := clitest.NewHost(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}", "a.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`,
		"notes.txt": "no manifest", "sub/c.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	clitest.CheckResult(t, h.Run("apply", "-f", dir), 0, "configmap/a created\nconfigmap/b created\n", "")
	empty := t.TempDir()
	clitest.CheckResult(t, h.Run("apply", "-f", empty), 2, "", "podrun: there are no manifests in the directory "+empty+": no file ends in .yaml, .yml or .json\n")

	mux := http.NewServeMux()
	mux.HandleFunc("/x", func(out http.ResponseWriter, _ *http.Request) {
		out.Write([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"))
	})
	mux.HandleFunc("/round", func(out http.ResponseWriter, in *http.Request) { http.Redirect(out, in, "/round", http.StatusFound) })
	mux.HandleFunc("/endless", func(out http.ResponseWriter, _ *http.Request) {
		for page := make([]byte, 1<<20); ; {
			if _, err := out.Write(page); err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	clitest.CheckResult(t, h.Run("apply", "-f", server.URL+"/x"), 0, "configmap/x created\n", "")
	for path, want := range map[string]string{
		"/none": "the server returned 404 Not Found", "/round": "redirected ten times", "/endless": "is larger than 32 MiB",
	} {
		if got := h.Run("apply", "-f", server.URL+path); got.Code == 0 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
