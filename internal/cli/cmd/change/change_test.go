package change

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/kustomize/api"
	"github.com/podrun/podrun/internal/manifest/printers"
)

// TestPut: the content is the new one; what podrun sets, the name and the namespace stay.
func TestPut(t *testing.T) {
	old := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "u", ResourceVersion: "3", Labels: map[string]string{"a": "b"}},
			Data:       map[string]string{"x": "1"},
		}
	}
	o := old()
	if err := put(o, "f", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"other","labels":{"c":"d"}},"data":{"y":"2"}}`)); err != nil {
		t.Fatal(err)
	}
	if o.UID != "u" || o.Namespace != "n" || o.ResourceVersion != "3" || o.Labels["a"] != "" || o.Labels["c"] != "d" || o.Data["y"] != "2" || o.Data["x"] != "" {
		t.Errorf("%+v", o)
	}
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`:                  "the name of the object (d) does not match the existing one (c)",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"m"}}`:  "the namespace of the object (m) does not match",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}`:                     "the kind of an object cannot be changed to Secret",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"dota":{"x":"1"}}`: "dota",
		"kind: [": "f",
		"":        "contains no object",
	} {
		if err := put(old(), "f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, o := range map[string]interface{ Validate() error }{
		"must specify --patch or --patch-file": &patchOptions{kind: api.Merge},
		"--patch and --patch-file together":    &patchOptions{kind: api.Merge, patch: "{}", file: "f"},
		"--type must be one of":                &patchOptions{kind: "apply", patch: "{}"},
		"-o and --dry-run":                     &patchOptions{kind: api.JSON, patch: "[]", format: "yaml", dryRun: cmdutil.DryRunClient},
		"unknown output format":                &editOptions{format: "wide"},
		"must specify --filename":              &replaceOptions{grace: -1},
		"replace takes files only":             &replaceOptions{words: []string{"x"}},
		"must have --force":                    &replaceOptions{files: []string{"f"}},
		"when --force is set":                  &replaceOptions{files: []string{"f"}, grace: -1, force: true, dryRun: cmdutil.DryRunServer},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	for _, o := range []interface{ Validate() error }{&patchOptions{kind: api.Strategic, file: "f"}, &editOptions{format: printers.YAML}, &replaceOptions{files: []string{"f"}, grace: -1}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestComments: each line of each error is a comment.
func TestComments(t *testing.T) {
	got := comments("pod/p", errors.Join(errors.New("one\n  two"), errors.New("\x1b[2J")))
	if want := "# pod/p was not valid:\n# * one\n# *   two\n# * \\u001b[2J\n#\n"; got != want {
		t.Errorf("%q", got)
	}
}
