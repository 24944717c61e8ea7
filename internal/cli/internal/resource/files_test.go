package resource

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// namesIn returns the names of the objects of a file, a directory or a URL.
func namesIn(file string) (string, error) {
	sources, err := ReadFiles(&cmdutil.Env{}, []string{file})
	if err != nil {
		return "", err
	}
	docs, err := Load(sources)
	var names []string
	for _, o := range docs.Stored {
		names = append(names, o.Name())
	}
	return strings.Join(names, " "), err
}

// TestManifestsOfDirectoriesAndURLs checks that a directory stands for its manifests, and a URL for its
// content.
func TestManifestsOfDirectoriesAndURLs(t *testing.T) {
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
	if got, err := namesIn(dir); got != "a b" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	empty := t.TempDir()
	if _, err := namesIn(empty); err == nil || err.Error() != "there are no manifests in the directory "+empty+": no file ends in .yaml, .yml or .json" {
		t.Error(err)
	}

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
	if got, err := namesIn(server.URL + "/x"); got != "x" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for path, want := range map[string]string{
		"/none": "the server returned 404 Not Found", "/round": "redirected ten times", "/endless": "is larger than 32 MiB",
	} {
		if got, err := namesIn(server.URL + path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
}

// TestStandardInputIsReadAgain: - may be named twice on a command line.
func TestStandardInputIsReadAgain(t *testing.T) {
	env := &cmdutil.Env{In: strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")}
	for range 2 {
		sources, err := ReadFiles(env, []string{"-"})
		if err != nil || len(sources) != 1 || sources[0].Name != "standard input" || !strings.Contains(string(sources[0].Data), "name: a") {
			t.Errorf("%+v, %v", sources, err)
		}
	}
}

// TestLoad: objects are sorted by how they are handled; the same object in two files, or in another namespace than
// -n names, is an error.
func TestLoad(t *testing.T) {
	const (
		pods   = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
		set    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
		config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: shop}}"
		rule   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}"
	)
	source := func(name, text string) Source { return Source{Name: name, Data: []byte(text)} }
	docs, err := Load([]Source{source("a", pods+"\n---\n"+set), source("b", config+"\n---\n"+rule)})
	if err != nil || len(docs.Pods) != 1 || len(docs.Workloads) != 1 || len(docs.Stored) != 1 || len(docs.Ignored) != 1 {
		t.Fatalf("%d pods, %d workloads, %d stored, %d ignored: %v", len(docs.Pods), len(docs.Workloads), len(docs.Stored), len(docs.Ignored), err)
	}
	if got := Location(&docs.Workloads[0]); got != "a, document 2" {
		t.Error(got)
	}
	for want, sources := range map[string][]Source{
		"configmap shop/m is defined twice: in a, document 1 and in b, document 1": {source("a", config), source("b", config)},
		`configmap m is in namespace "shop", but -n is "web"`:                      {{Name: "a", Data: []byte(config), Namespace: "web", RejectOtherNamespaces: true}},
		"cannot use image A:1":                      {source("a", strings.Replace(pods, "image: i", "image: 'A:1'", 1))},
		"a is not a manifest that podrun can run\n": {source("a", "kind: [")},
	} {
		if _, err := Load(sources); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
