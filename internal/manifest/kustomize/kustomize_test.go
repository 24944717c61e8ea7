package kustomize

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/kustomize/api"
)

// TestBuild builds trees of the kind that repositories have. Each archive has its files, and as golden what the command
// `kustomize build` of v5.8.2 prints for them, byte for byte; or as refused what the error says.
func TestBuild(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 25 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	path, transport := os.Getenv("PATH"), http.DefaultTransport
	t.Setenv("PATH", path) // build changes both
	defer func() { http.DefaultTransport = transport }()
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, golden, refused := t.TempDir(), "", ""
			for _, f := range archive.Files {
				switch f.Name {
				case "golden":
					golden = string(f.Data)
				case "refused":
					refused = strings.TrimSpace(string(f.Data))
				default:
					to := filepath.Join(dir, f.Name)
					if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(to, f.Data, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if (golden == "") == (refused == "") {
				t.Fatal("it needs golden or refused")
			}
			got := build(api.Request{Dir: dir})
			if refused != "" {
				text, remote := strings.CutPrefix(refused, "remote:")
				if got.Remote != remote || got.Problem == "" || !strings.Contains(got.Problem, strings.TrimSpace(text)) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Problem != "" || string(got.Output) != golden {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", got.Problem, got.Output, golden)
			}
		})
	}
}

// TestRemote: with AllowRemote the network is used, which refuses this port.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: ['http://127.0.0.1:1/a.yaml']\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := build(api.Request{Dir: dir, AllowRemote: true}); got.Remote || !strings.Contains(got.Problem, "connection refused") {
		t.Errorf("%+v", got)
	}
}

// TestPatch: the three forms, in JSON and YAML, and what is wrong with a patch.
func TestPatch(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"i","env":[{"name":"X","value":"1"}]},{"name":"b","image":"j"}]}}`
	for _, c := range []struct {
		form  api.PatchType
		patch string
		want  string // the object, or the problem
	}{
		{api.Strategic, `{"spec":{"containers":[{"name":"b","image":"k"}]}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"env":[{"name":"X","value":"1"}],"image":"i","name":"a"},{"image":"k","name":"b"}]}}`},
		{api.Strategic, "metadata:\n  labels: {x: z}\nspec: {containers: [{name: b, $patch: delete}]}", `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"x":"z"},"name":"p"},"spec":{"containers":[{"env":[{"name":"X","value":"1"}],"image":"i","name":"a"}]}}`},
		{api.Merge, `{"metadata":{"name":null},"spec":{"containers":[]}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[]}}`},
		{api.JSON, `[{"op":"test","path":"/kind","value":"Pod"},{"op":"remove","path":"/spec"}]`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`},
		{api.JSON, `[{"op":"replace","path":"/spec/none/x","value":1}]`, "doc is missing path"},
		{api.JSON, `{"op":"remove"}`, "read the patch, a list of operations"},
		{api.Strategic, `[1]`, "read the patch, an object"},
		{api.Merge, "a: [", "read the patch"},
	} {
		got := patch(api.Patch{Type: c.form, Object: []byte(object), Patch: []byte(c.patch), Schema: api.SchemaOf(reflect.TypeFor[corev1.Pod]())})
		if c.want[0] == '{' && string(got.Output) != c.want || c.want[0] != '{' && !strings.Contains(got.Problem, c.want) {
			t.Errorf("%s %s: %s%s, want %s", c.form, c.patch, got.Output, got.Problem, c.want)
		}
	}
}

// TestServe: a request and its result are JSON; something else is an error.
func TestServe(t *testing.T) {
	var out bytes.Buffer
	answer := func(r api.Request) api.Result { return api.Result{Output: []byte(r.Dir)} }
	if code := serve(strings.NewReader(`{"dir":"d"}`), &out, answer); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var got api.Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || string(got.Output) != "d" {
		t.Errorf("%+v, %v", got, err)
	}
	if code := serve(strings.NewReader("x"), &out, answer); code != 2 {
		t.Errorf("exit code %d", code)
	}
}
