package manifest_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
)

// TestGenerateName: an object without a name gets one from its generateName, of at most 63 characters, with
// what follows from a name.
func TestGenerateName(t *testing.T) {
	long := strings.Repeat("a", 70)
	pod := "kind: Pod\napiVersion: v1\nspec: {containers: [{name: c, image: i}]}\n"
	config := "kind: ConfigMap\napiVersion: v1\n"
	for _, c := range []struct{ text, want string }{
		{pod + "metadata: {generateName: web-}", "web-x7k2p"},
		{config + "metadata: {generateName: web-}", "web-x7k2p"},
		{config + "metadata: {generateName: " + long + "}", long[:58] + "x7k2p"},
		{pod + "metadata: {generateName: web-, name: a}", "a"},
		{"kind: Job\napiVersion: batch/v1\nmetadata: {generateName: web-}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}", "web-x7k2p"},
	} {
		objects, err := manifest.LoadInNamespace("f", []byte(c.text), "", func() string { return "x7k2p" })
		if err != nil {
			t.Fatal(err)
		}
		o := &objects[0]
		if o.Name() != c.want || o.Generated != (c.want != "a") || o.Stored != nil && (o.Stored.Name != c.want || o.Stored.GenerateName == "") {
			t.Errorf("%s: %s, generated %v, stored %+v", c.text, o.Name(), o.Generated, o.Stored)
		}
	}
	_, err := manifest.LoadInNamespace("f", []byte(pod+"metadata: {generateName: a_b-}"), "", func() string { return "x7k2p" })
	if err == nil || !strings.Contains(err.Error(), `metadata.generateName: Invalid value: "a_b-"`) {
		t.Error(err)
	}
	// In the stored form of a pod the name alone identifies it.
	old, next := load(t, pod+"metadata: {generateName: web-, name: a}"), load(t, pod+"metadata: {name: a}")
	if d, err := manifest.Compare(old.Pod, next.Pod); err != nil || !d.Empty() {
		t.Errorf("%+v %v", d, err)
	}
}
