package manifest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/pod"
)

// FuzzLoad: an accepted object keeps its meaning when it is stored and read again, and its defaults are the
// same if they are set twice.
func FuzzLoad(f *testing.F) {
	for _, spec := range []string{
		one("resources: {limits: {cpu: 1, memory: 1Gi}}, env: [{name: a, value: $(b)}]"),
		one("ports: [{containerPort: 80, hostPort: 8080}], livenessProbe: {httpGet: {port: 80}}"),
		"{volumes: [{name: v, emptyDir: {medium: Memory}}], containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /v}]}], ephemeralContainers: [{name: e, image: b}]}",
	} {
		f.Add([]byte(podYAML(spec)))
	}
	f.Add([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		objects, err := manifest.Load("f", data)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		for i := range objects {
			if objects[i].Pod == nil {
				continue
			}
			text, err := manifest.Marshal(objects[i].Pod)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := manifest.Unmarshal(text)
			if err != nil {
				t.Fatal(err)
			}
			defaulting.SetDefaults(stored)
			if d, err := manifest.Compare(stored, objects[i].Pod); err != nil || !d.Empty() && len(d.Ephemeral) == 0 {
				t.Fatalf("it differs once it was stored: %+v, %v\n%s", d, err, text)
			}
		}
	})
}

// FuzzBuild: no config of an image crashes the builder of a plan, or sets more than its arguments and
// variables.
func FuzzBuild(f *testing.F) {
	for _, config := range []pod.Image{
		{ID: "sha256:a", Entrypoint: []string{"/bin/sh", "-c"}, Cmd: []string{"echo $(A)"}, Env: []string{"A=b", "PATH=/bin", "none", "=x"}, User: "1:2"},
		{Entrypoint: []string{"\x00"}},
		{Entrypoint: []string{""}, User: "::", Env: []string{"\x00", "A\n=b"}, WorkingDir: "../.."},
	} {
		text, err := json.Marshal(config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var config pod.Image
		if json.Unmarshal(data, &config) != nil {
			return
		}
		objects, err := manifest.Load("f", []byte(podYAML(one(""))))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := manifest.Build(&objects[0], map[string]pod.Image{"c": config}, manifest.BuildOptions{})
		if err != nil {
			return
		}
		c := plan.Containers[0]
		for _, word := range slices.Concat(c.Args, c.Env, []string{c.Cwd, c.User}) {
			if strings.ContainsRune(word, 0) {
				t.Fatalf("%q can be given to no program", word)
			}
		}
		if !strings.HasPrefix(c.Cwd, "/") {
			t.Fatalf("%q is no absolute path", c.Cwd)
		}
	})
}
