package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/manifest"
)

func TestImages(t *testing.T) {
	o := load(t, podYAML("{initContainers: [{name: i, image: 'a:1'}], containers: [{name: c, image: b}, {name: d, image: c, imagePullPolicy: Never}], volumes: [{name: v, image: {reference: b, pullPolicy: Always}}]}"))
	want := []manifest.ImageUse{{Container: "", Volume: "v", Reference: "b", PullPolicy: "Always", PolicyUnset: false}, {Container: "i", Volume: "", Reference: "a:1", PullPolicy: "IfNotPresent", PolicyUnset: true}, {Container: "c", Volume: "", Reference: "b", PullPolicy: "Always", PolicyUnset: true}, {Container: "d", Volume: "", Reference: "c", PullPolicy: "Never", PolicyUnset: false}}
	if diff := cmp.Diff(want, manifest.Images(o.Pod)); diff != "" {
		t.Error(diff)
	}
}

// TestMistakes compares the messages of all mistakes: each file of testdata/bad has its list of mistakes
// beside it.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := manifest.Load(filepath.Base(file), data)
			if err == nil || objects != nil {
				t.Fatalf("taken: %d objects, error %v", len(objects), err)
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestDecodeTakes(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"
	for _, test := range []struct {
		name, in string
		want     []string // names
		lines    []int
	}{
		{"one", pod, []string{"a"}, []int{1}},
		{"json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j"},"spec":{}}`, []string{"j"}, []int{1}},
		{"two, and empty documents", "# x\n---\n" + pod + "---\n# nothing\n---\n~\n---\n" + strings.Replace(pod, "name: a", "name: b", 1) + "---\n", []string{"a", "b"}, []int{3, 12}},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n- {apiVersion: v1, kind: Pod, metadata: {name: z}}\n", []string{"x", "z"}, []int{4, 5}},
		{"a list of pods", "apiVersion: v1\nkind: PodList\nmetadata: {resourceVersion: '1'}\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n", []string{"x"}, []int{5}},
		{"what kubectl wrote", pod + "status: {phase: Running}\n", []string{"a"}, []int{1}},
	} {
		objects, err := manifest.Decode("f", []byte(test.in))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var names []string
		var lines []int
		for _, o := range objects {
			names, lines = append(names, o.Pod.Name), append(lines, o.Line)
		}
		if diff := cmp.Diff(test.want, names) + cmp.Diff(test.lines, lines); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestDecodeOfNothing(t *testing.T) {
	for _, in := range []string{"", "\n\n", "---\n", "# only a comment\n---\n---\n", "apiVersion: v1\nkind: List\nitems: []\n"} {
		_, err := manifest.Decode("f.yaml", []byte(in))
		if err == nil || err.Error() != "f.yaml: contains no object" {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestDecodeOfATab(t *testing.T) {
	_, err := manifest.Decode("f.yaml", []byte("---\napiVersion: v1\nkind: Pod\nspec:\n\tcontainers: []\n"))
	if err == nil || err.Error() != "f.yaml: document 1, line 5: invalid YAML: the line is indented with a tab, where only spaces may be" {
		t.Error(err)
	}
}

func TestErrorsAreFound(t *testing.T) {
	_, err := manifest.Load("web.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: a\n    image: b\n    imagePullPolice: Always\n"))
	var mistake *manifest.Error
	if !errors.As(err, &mistake) {
		t.Fatalf("no *Error in %v", err)
	}
	want := manifest.Error{File: "web.yaml", Document: 1, Line: 8, Field: "spec.containers[0].imagePullPolice", Message: "unknown field (did you mean imagePullPolicy?)"}
	if *mistake != want {
		t.Errorf("got %+v", *mistake)
	}
	if got, want := mistake.Error(), "web.yaml: document 1, line 8: spec.containers[0].imagePullPolice: unknown field (did you mean imagePullPolicy?)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMistakesDoNotForgeLines: a name from the file cannot end a line or reach a
// terminal.
func TestMistakesDoNotForgeLines(t *testing.T) {
	_, err := manifest.Load("f", []byte("apiVersion: v1\nkind: \"Pod\\nf: all is well\\e[2J\"\n"))
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("got %q", err)
	}
}

func TestLoadKeepsPodsApart(t *testing.T) {
	pod := podYAML(one(""))
	got := mistakes(pod + "---\n" + pod)
	want := []string{`document 2, line 8: metadata.name: Duplicate value: "p": another Pod of this file has it`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := mistakes(pod + "---\n" + strings.Replace(pod, "name: p", "name: p, namespace: other", 1)); got != nil {
		t.Error(got)
	}
}

func TestLoadForgetsTheServersBookkeeping(t *testing.T) {
	o := load(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u, resourceVersion: '5', generation: 3, creationTimestamp: 2020-01-01T00:00:00Z, deletionTimestamp: 2020-01-01T00:00:00Z}\nspec: "+one("")+"\nstatus: {phase: Failed}\n")
	m := o.Pod.ObjectMeta
	if m.UID != "" || m.ResourceVersion != "" || m.Generation != 3 || !m.CreationTimestamp.IsZero() || m.DeletionTimestamp != nil || o.Pod.Status.Phase != "" {
		t.Errorf("kept: %+v, phase %s", m, o.Pod.Status.Phase)
	}
}

func TestFindingsHaveLines(t *testing.T) {
	o := load(t, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n    image: i\n    resources:\n      limits:\n        cpu: 1\n")
	for _, f := range o.Findings {
		if f.Path == "spec.containers[0].resources.limits[cpu]" && f.Line == 11 {
			return
		}
	}
	t.Errorf("no finding on line 11: %+v", o.Findings)
}
