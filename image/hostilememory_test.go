package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/internal/reexec"
)

// filled returns a JSON document of the largest size, which repeats an element.
func filled(head, element, tail string) []byte {
	n := (ingest.MaxJSON - len(head) - len(tail)) / (len(element) + 1)
	return []byte(head + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + tail)
}

// TestMemoryOfHostileDocuments pulls images whose documents have as many elements as fit into them. They are refused
// before they are decoded.
func TestMemoryOfHostileDocuments(t *testing.T) {
	layer := layerTar(t, f{Name: "x"})
	diffID := digest.FromBytes(layer)
	manifest := func(configType string, config []byte) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[`,
			v1.MediaTypeImageManifest, configType, digest.FromBytes(config), len(config))
	}
	descriptor := fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}]}`, v1.MediaTypeImageLayer, diffID, len(layer))
	rootFS := fmt.Sprintf(`{"rootfs":{"type":"layers","diff_ids":[%q]},`, diffID)
	image := manifest(v1.MediaTypeImageConfig, []byte("{}"))
	for name, tt := range map[string]struct {
		top    []byte // the manifest or index; nil: a manifest for config
		config []byte
	}{
		"layers":      {filled(image, `{}`, `]}`), nil},
		"files":       {filled(manifest(v1.MediaTypeEmptyJSON, []byte("{}")), `{}`, `]}`), nil},
		"manifests":   {filled(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageIndex+`","manifests":[`, `{}`, `]}`), nil},
		"lists twice": {filled(image, `{}`, `],"LAYERS":[]}`), nil},
		"URLs":        {filled(image+`{"urls":[`, `""`, `]}]}`), nil},
		"history":     {nil, filled(rootFS+`"history":[`, `{}`, `]}`)},
		"variables":   {nil, filled(rootFS+`"config":{"Env":[`, `""`, `]}}`)},
		"diffIDs":     {nil, filled(`{"rootfs":{"type":"layers","diff_ids":[`, `""`, `]}}`)},
		"after text":  {nil, filled(rootFS+`"x":"\\\"{,\\\\","history":[`, `{}`, `]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layer}}))
			if tt.top == nil {
				tt.top = []byte(manifest(v1.MediaTypeImageConfig, tt.config) + descriptor)
				fk.blobs["blobs/"+digest.FromBytes(tt.config).String()] = tt.config
			}
			fk.blobs["manifests/latest"], fk.types["manifests/latest"] = tt.top, ""
			cmd := reexec.Command(reexec.Spec{Name: "_pull", Args: []string{newStore(t).Dir, repo, "memory"}})
			out, err := cmd.CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("it has more than 100000 values")) {
				t.Errorf("%v: %.1000s", err, out)
			}
			var peak int64
			if _, err := fmt.Sscanf(string(out), "memory %d", &peak); err != nil || peak > mostMemory {
				t.Errorf("the pull has had %d kB, at most %d: %v", peak, mostMemory, err)
			}
		})
	}
}

// TestMemoryOfErrors: the image program ends, with an error of the request, when the library decodes an error of a
// registry that would fill the memory.
func TestMemoryOfErrors(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		elements := bytes.Repeat([]byte(`{},`), 1<<20)
		io.WriteString(w, `{"errors":[`)
		for range 30 << 20 / len(elements) {
			w.Write(elements)
		}
		io.WriteString(w, `{}]}`)
		return true
	}
	s, err := Open(newStore(t).Dir, NewProgram(func() (string, func(), error) { return "/proc/self/exe", func() {}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Pull(context.Background(), repo, api.PullOptions{})
	wantError(t, err, "takes more than 512 MiB of memory")
}
