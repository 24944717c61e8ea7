package image

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/internal/pod"
)

// TestWhatAnImageSaysBesidesItsProcess: only the process of an image's config has an effect. Its volumes,
// whose content other runtimes copy, and labels, which other runtimes obey, have none (CVE-2022-23648,
// CVE-2026-53488); variables for the dynamic loader stay text.
func TestWhatAnImageSaysBesidesItsProcess(t *testing.T) {
	layer := layerTar(t, f{Name: "file", Content: "x"})
	plain := v1.ImageConfig{User: "7", Env: []string{"PATH=/bin", "LD_PRELOAD=/evil.so", "GODEBUG=madvdontneed=1", "HOME=/x\nroot2:x:0:0"}, Cmd: []string{"run"}, WorkingDir: "/w", StopSignal: "SIGINT"}
	unusual := plain
	unusual.Volumes = map[string]struct{}{"/../../etc": {}, "/etc": {}, "../../..": {}}
	unusual.Labels = map[string]string{"run": "podman run --privileged", "io.podman.annotations.autoupdate": "registry", "io.kubernetes.cri-o.userns-mode": "x", "podrun.dev/network": "host"}
	unusual.ExposedPorts = map[string]struct{}{"22/tcp": {}}
	s := newStore(t)
	images := map[string]pod.Image{}
	for name, config := range map[string]v1.ImageConfig{"plain": plain, "unusual": unusual} {
		got := load(t, s, newLayout(t).add(img{Name: name, Layers: [][]byte{layer}, Config: config, Edit: func(_ *v1.Image, m *v1.Manifest) {
			if name == "unusual" {
				m.Annotations = unusual.Labels
			}
		}}).path())
		got.Name, got.ID, got.Digest = "", "", ""
		images[name] = got
	}
	if diff := cmp.Diff(images["plain"], images["unusual"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(plain.Env, images["unusual"].Env); diff != "" {
		t.Error(diff)
	}
}
