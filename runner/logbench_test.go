package runner

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/pod"
)

// BenchmarkLog is how fast a container can write: lines of 100 bytes, rotation
// included.
func BenchmarkLog(b *testing.B) {
	dir := b.TempDir()
	l, err := openLog(logPlace{dir: dir, limits: logLimits(&pod.Plan{}), flight: filepath.Join(dir, "flight")}, func([]byte) {})
	if err != nil {
		b.Fatal(err)
	}
	w, err := l.pipe("stdout")
	if err != nil {
		b.Fatal(err)
	}
	block := bytes.Repeat(append(bytes.Repeat([]byte("x"), 99), '\n'), 1000)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := w.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	l.drain()
}
