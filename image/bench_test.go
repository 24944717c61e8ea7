package image

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/reexec"
)

// benchLayout makes an image of about 100 MB in 8 layers and 8,000 files, which gzip halves.
func benchLayout(b *testing.B, compress func(testing.TB, []byte) []byte) (path string, size int64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var layers [][]byte
	for l := range 8 {
		var entries []f
		for i := range 1000 {
			random := make([]byte, 6<<10)
			for j := range random {
				random[j] = byte(rnd.Uint32())
			}
			if i%20 == 0 {
				entries = append(entries, f{Name: fmt.Sprintf("l%d/d%d/", l, i/20), UID: i})
			}
			entries = append(entries, f{Name: fmt.Sprintf("l%d/d%d/f%d", l, i/20, i), Content: string(random) + strings.Repeat("text ", 1300), UID: i})
		}
		layer := layerTar(b, entries...)
		size += int64(len(layer))
		layers = append(layers, layer)
	}
	return newLayout(b).add(img{Name: "bench", Layers: layers, Compress: compress}).path(), size
}

func BenchmarkLoad(b *testing.B) {
	for _, kind := range []struct {
		name     string
		compress func(testing.TB, []byte) []byte
	}{{"plain", nil}, {"gzip", gzipped}, {"zstd", zstandard}} {
		b.Run(kind.name, func(b *testing.B) {
			path, size := benchLayout(b, kind.compress)
			b.SetBytes(size)
			for b.Loop() {
				b.StopTimer()
				dir := filepath.Join(tempDir(b), "images")
				cmd := reexec.Command(reexec.Spec{Name: "_load", Args: []string{dir, path, "memory"}})
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				b.StartTimer()
				if err := cmd.Run(); err != nil {
					b.Fatalf("%v: %s", err, out.String())
				}
				var peak int64
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				if _, err := fmt.Sscanf(lines[len(lines)-1], "memory %d", &peak); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(peak)/1024, "MiB-peak")
			}
		})
	}
}

// printMemory prints the peak memory of this process in kB. Its ru_maxrss would include the process that
// started it.
func printMemory() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println("memory", strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(peak), "kB")))
		}
	}
	return nil
}

// BenchmarkResolve measures the cost of a cached image for podrun up.
func BenchmarkResolve(b *testing.B) {
	s := newStore(b)
	var layers [][]byte
	for i := range 8 {
		layers = append(layers, layerTar(b, f{Name: fmt.Sprint(i)}))
	}
	load(b, s, newLayout(b).add(img{Name: "x", Layers: layers}).path())
	for b.Loop() {
		if _, err := s.Ensure(context.Background(), "x", IfNotPresent, api.PullOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
