package manifest_test

import (
	"testing"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// BenchmarkLoad measures the manifest's part of podrun up: one init container and two apps, from text to
// plan.
func BenchmarkLoad(b *testing.B) {
	text := []byte(podYAML(`{
  initContainers: [{name: init, image: "i:1", command: [sh, -c, "echo $(A)"], env: [{name: A, value: b}]}],
  containers: [
    {name: web, image: "i:1", ports: [{containerPort: 80}], volumeMounts: [{name: v, mountPath: /srv}]},
    {name: sync, image: "i:1", resources: {limits: {cpu: 100m, memory: 64Mi}}, volumeMounts: [{name: v, mountPath: /srv}]}],
  volumes: [{name: v, emptyDir: {}}]}`))
	image := pod.Image{Cmd: []string{"run"}}
	images := map[string]pod.Image{"init": image, "web": image, "sync": image}
	b.ReportAllocs()
	for b.Loop() {
		objects, err := manifest.Load("f", text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := manifest.Build(&objects[0], images, manifest.BuildOptions{UID: "uid-1", NodeName: "node-1", NodeMemory: gib}); err != nil {
			b.Fatal(err)
		}
	}
}
