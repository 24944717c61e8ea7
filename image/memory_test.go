package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/reexec"
)

// mostMemory is the memory limit of every process of a pull, in kB: "whatever the image". It is about twice
// what they use.
const mostMemory = 64 << 10

// TestMemoryOfAPull pulls images that could fill the memory: layers that are larger than the limit,
// compressed and unpacked; many files; a zstd window of 8 MiB each; an index of 10,000 images. The peak is
// the kernel's figure, and for the unpackers what is reported to their parent.
func TestMemoryOfAPull(t *testing.T) {
	random := make([]byte, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	large := func(n int, fill string) []byte {
		return layerTar(t, f{Name: fmt.Sprint("large", n), Content: strings.Repeat(fill, 100)})
	}
	var many []f
	for i := range 5000 {
		many = append(many, f{Name: fmt.Sprintf("d%d/a-name-that-takes-some-room-%d", i/1000, i)})
	}
	for name, tt := range map[string]struct {
		layers   [][]byte
		compress func(testing.TB, []byte) []byte
		others   int // images in the index
	}{
		"large blobs": {[][]byte{large(1, string(random)), layerTar(t, many...)}, nil, 0},
		"zstd":        {[][]byte{large(1, string(random[:512<<10])), large(2, strings.Repeat("x", 512<<10)), large(3, strings.Repeat("y", 512<<10))}, zstandard, 0},
		"large index": {[][]byte{layerTar(t, f{Name: "x"})}, nil, 9999},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fk, repo := newFake(t, newLayout(t).add(img{Layers: tt.layers, Compress: tt.compress}))
			if tt.others > 0 {
				fk.index(tt.others)
			}
			cmd := reexec.Command(reexec.Spec{Name: "_pull", Args: []string{newStore(t).Dir, repo, "memory"}})
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			var peak, unpackers int64
			if _, err := fmt.Sscanf(said.String(), "memory %d\nunpackers %d", &peak, &unpackers); err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			t.Logf("%d kB, unpackers %d kB", peak, unpackers)
			if peak > mostMemory || unpackers > mostMemory {
				t.Errorf("the pull has had %d kB, its unpackers up to %d kB each; at most %d", peak, unpackers, mostMemory)
			}
		})
	}
}

// index adds the image to an index after others, which are for other machines.
func (fk *fake) index(others int) {
	fk.t.Helper()
	own := fk.blobs["manifests/latest"]
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for i := range others {
		index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString(fmt.Sprint(i)), Size: 1,
			Platform: &v1.Platform{OS: "linux", Architecture: fmt.Sprint("a", i)}})
	}
	index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(own), Size: int64(len(own)),
		Platform: &v1.Platform{OS: "linux", Architecture: here()}})
	text, err := json.Marshal(index)
	if err != nil {
		fk.t.Fatal(err)
	}
	fk.blobs["manifests/latest"], fk.types["manifests/latest"] = text, v1.MediaTypeImageIndex
}

// limitMemory sets the limit as the CLI does before it adds images.
func limitMemory() { debug.SetMemoryLimit(server.Memory) }

// printChildren prints the peak memory of the largest child of this process in kB. It is at least the memory
// of this process when it started the child.
func printChildren() error {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &use); err != nil {
		return err
	}
	fmt.Println("unpackers", use.Maxrss)
	return nil
}
