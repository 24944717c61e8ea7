package manifest_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
)

// TestPinImages: every reference of an image is replaced, and nothing else. In the texts a reference to replace is in
// guillemets.
func TestPinImages(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	for name, text := range map[string]string{
		"a Pod": pod + "metadata: {name: web} # image: b\nspec:\n  initContainers:\n  - name: a\n    image: «a:1»   # the first\n" +
			"  containers: # all\n  - image: «registry.example:5000/b»\n    name: image\n    env: [{name: image, value: c}]\n" +
			"  ephemeralContainers: [{name: e, image: «e»}]\n  volumes:\n  - {name: v, image: {reference: «v:1», pullPolicy: Never}}\n  - name: w\n    image:\n      reference: «w»\n",
		"a template":            "kind: Deployment\napiVersion: apps/v1\nspec:\n  template:\n    spec:\n      containers:\n      - image: «a»\n",
		"a template of a Job":   "kind: CronJob\napiVersion: batch/v1\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{image: «a»}]}}}}}\n",
		"a List":                "kind: List\napiVersion: v1\nitems:\n- kind: Pod\n  spec: {containers: [{image: «a»}]}\n- kind: DaemonSet\n  spec: {template: {spec: {containers: [{image: «b»}]}}}\n",
		"a kind of others":      "kind: Rollout\napiVersion: example.org/v1\nspec: {template: {spec: {containers: [{image: «a»}]}}}\n",
		"a schema":              "kind: CustomResourceDefinition\napiVersion: v1\nspec: {properties: {containers: {items: {image: a}}, volumes: {image: {reference: b}}}}\n",
		"text in a ConfigMap":   "kind: ConfigMap\napiVersion: v1\ndata:\n  pod.yaml: |\n    kind: Pod\n    spec: {containers: [{image: a}]}\n",
		"no manifest":           "spec: {containers: [{image: a}]}\n",
		"no map":                "- containers: [{image: a}]\n---\ntext\n---\n5\n---\nnull\n",
		"documents":             "# one\n---\n" + pod + "spec: {containers: [{image: «a»}]}\n---\n---\n# none\n--- # two\n" + pod + "spec: {containers: [{image: «b»}, {image: «a»}]}",
		"nothing":               "",
		"quotes":                pod + "spec:\n  containers:\n  - 'image': '«a»'\n  - \"image\": \"«b»\"  \n  - {\"image\":\"«c»\"}\n  - image:\n      «d»\n",
		"JSON":                  `{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image":"«a»"},` + "\n\t{\"image\" : \"«b:1»\"}]}}",
		"tags":                  pod + "spec:\n  containers:\n  - image: !!str «a»\n  - image: !!str \"«b»\"\n  - image: !!binary c\n  - image: 5\n  - image: null\n  - image:\n  - image: [d]\n  - image: \"\"\n",
		"block scalars":         pod + "spec:\n  containers:\n  - image: |- # a\n      «a»\n  - image: >-\n     «b»\n    name: b\n",
		"DOS lines":             pod + "spec:\r\n  containers:\r\n  - image: «a»\r\n  - image: «b» # c\r\n---\r\n" + pod + "spec:\r\n  containers: [{image: '«c»'}]\r\n",
		"old Mac lines":         "apiVersion: v1\rkind: Pod\rspec:\r  containers:\r  - image: «a»\r",
		"other line ends":       pod + "metadata:\n  a: \"\u2028\u0085\u2029\"\nspec: {containers: [{image: «a»}]}\n",
		"other letters":         pod + "spec: {containers: [{name: äöü€😀, image: «a»}]}\n",
		"a byte order mark":     "\ufeffapiVersion: v1\nkind: Pod\nspec: {containers: [{image: «a»}]}\n",
		"on the first line":     "\ufeff{apiVersion: v1, kind: Pod, spec: {containers: [{image: «a»}]}}",
		"anchors":               pod + "spec:\n  initContainers:\n  - image: &a «a»\n  - image: *a\n  containers:\n  - {image: *a}\n  - image: &b !!str '«b»'\n  - image: &c\n      # c\n      «c»\n",
		"an anchor elsewhere":   pod + "metadata: {labels: {version: &v a, other: *v}}\nspec: {containers: [{image: «*v»}, {image: «*v», name: b}]}\n",
		"aliases of parts":      pod + "x: &x {image: «a»}\ny: &y\n- image: «b»\n- *x\nspec: {initContainers: *y, containers: *y}\n",
		"merges":                pod + "x: &x {image: «a», name: x}\ny: &y {<<: *x}\nz: &z {image: z}\nspec:\n  containers:\n  - {<<: *x, name: c}\n  - {<<: *z, image: «b»}\n  - <<: [*y, *z]\n",
		"a merged spec":         "kind: Deployment\napiVersion: apps/v1\nx: &x {containers: [{image: «a»}]}\nspec: {template: {spec: {<<: *x}}}\n",
		"with a variable":       pod + "spec: {containers: [{image: \"example.org/${NAME}:1\"}]}\n",
		"a compose file":        "# c\nx-base: &base\n  image: «base»\nservices:\n  web:\n    image: «web:1»\n    containers: [{image: no}]\n  other: {<<: *base}\n  built: {build: .}\n  files:\n    image: 'files@sha256:0'\n    volumes:\n    - type: image\n      source: «assets»\n      target: /a\n    - {type: bind, source: /b, target: /b}\n    - c:/c\n",
		"merged services":       "x-common: &common\n  a: {image: «a»}\nservices:\n  <<: *common\n  b: {image: «b»}\n",
		"services of an object": "kind: X\napiVersion: v1\nservices: {web: {image: web}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			calls := map[string]int{}
			got, err := manifest.PinImages("x.yaml", []byte(strings.NewReplacer("«", "", "»", "").Replace(text)), func(reference string) (string, error) {
				calls[reference]++
				if strings.ContainsAny(reference, "@$") {
					return reference, nil
				}
				return reference + "@sha256:0", nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.NewReplacer("«*v»", "a@sha256:0", "«", "", "»", "@sha256:0").Replace(text); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for reference, n := range calls {
				if n != 1 {
					t.Errorf("%s was pinned %d times", reference, n)
				}
			}
		})
	}
}

// TestPinImagesErrors: an error names the file, the line and the image.
func TestPinImagesErrors(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
	for name, c := range map[string]struct{ text, want string }{
		"pin fails":        {"# x\n---\n" + pod + "  - image: a\n", "x.yaml: document 1, line 7: image a: no such image"},
		"no YAML":          {pod + "  - image: a@sha256:0\n---\na: [\n", "x.yaml: document 2, line 7: invalid YAML: "},
		"a separator":      {"a: 1\n--- b\n", "x.yaml: document 1, line 2: a document separator (---)"},
		"too large":        {"a: " + strings.Repeat("x", 1<<20), "x.yaml: document 1, line 1: the document is larger than 1 MiB"},
		"on several lines": {pod + "  - image: b\n      c\n", "x.yaml: document 1, line 5: image b c cannot be replaced by b c@sha256:0 here"},
		"no reference":     {pod + "  - image: 'b c'\n", "x.yaml: document 1, line 5: image b c cannot be replaced by b c@sha256:0 here"},
	} {
		_, err := manifest.PinImages("x.yaml", []byte(c.text), func(reference string) (string, error) {
			switch reference {
			case "a":
				return "", errors.New("no such image")
			case "a@sha256:0":
				return reference, nil
			}
			return reference + "@sha256:0", nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v instead of %s", name, err, c.want)
		}
	}
}

// FuzzPinImages: whatever the text is, it has the new references afterwards.
func FuzzPinImages(f *testing.F) {
	f.Add([]byte(podYAML("{containers: [{image: a}, {image: 'b'}, {image: \"c\"}]}")))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: &a !!str a\n  - {<<: {image: *a}}\n  - image: |-\n      b\n  - image: # c\r\n     c\n"))
	f.Add([]byte("services:\n  a: {image: a, volumes: [{type: image, source: b}]}\n  <<: {c: {image: c}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		want := map[string]bool{}
		pinned, err := manifest.PinImages("f", data, func(reference string) (string, error) {
			want[reference+"@0"] = true
			return reference + "@0", nil
		})
		if err != nil {
			return
		}
		got := map[string]bool{}
		again, err := manifest.PinImages("f", pinned, func(reference string) (string, error) {
			got[reference] = true
			return reference, nil
		})
		if err != nil || !maps.Equal(got, want) || !bytes.Equal(again, pinned) {
			t.Fatalf("%q became %q with %v instead of %v: %v", data, pinned, got, want, err)
		}
	})
}
