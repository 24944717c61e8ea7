package download

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/layer"
)

func TestDropPartials(t *testing.T) {
	s := &Downloader{PartialDir: filepath.Join(t.TempDir(), "partial"), Limits: func(string) (layer.Limits, error) { return layer.Limits{Bytes: 1 << 30}, nil }}
	blob := digest.FromString("x")
	if err := s.RemovePartials(0); err != nil {
		t.Fatal(err)
	}
	p, err := s.openPartial(blob, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.openPartial(blob, 10); err == nil {
		t.Error("two processes fetch one blob")
	}
	if err := p.append(bytes.Repeat([]byte("x"), 5)); err != nil {
		t.Fatal(err)
	}
	if err := s.RemovePartials(time.Hour); err != nil || p.close() != nil {
		t.Fatal(err)
	}
	if p, err = s.openPartial(blob, 10); err != nil || p.size != 5 {
		t.Fatalf("%+v, %v", p, err)
	}
	p.close()
	if err := s.RemovePartials(0); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.PartialDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
