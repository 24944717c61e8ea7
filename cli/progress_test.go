package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/image"
)

func newTestProgress(width int) (*progress, *strings.Builder) {
	var out strings.Builder
	clock := time.Unix(0, 0)
	return &progress{verb: "fetching",
		out: &out, width: width, images: map[string]*incoming{}, byID: map[string]*layerBar{},
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}, &out
}

const layer = "sha256:4a1b6c0123456789"

func TestProgressInAPipe(t *testing.T) {
	p, out := newTestProgress(0)
	p.tell(image.Progress{Image: "a", Layer: "sha256:1", Status: image.Exists})
	p.done("a") // it was there: nothing to say
	for _, n := range []int64{0, 1 << 20, 2 << 20} {
		p.tell(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: n, Total: 3 << 20})
	}
	p.tell(image.Progress{Image: "b", Layer: layer, Status: image.Done, Done: 3 << 20, Total: 3 << 20})
	p.tell(image.Progress{Image: "b", Layer: "sha256:2", Status: image.Done, Done: 500})
	p.done("b")
	p.end()
	if want := "podrun: fetching b\npodrun: fetched b: 3.1 MB\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	p, out := newTestProgress(60)
	p.tell(image.Progress{Image: "b", Layer: layer, Status: image.Waiting, Total: -1})
	p.tell(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: 1 << 20, Total: 4 << 20})
	p.tell(image.Progress{Image: "b", Layer: layer, Status: image.Done, Done: 4 << 20, Total: 4 << 20})
	p.done("b")
	p.end()
	want := "b 4a1b6c012345 waiting\n" +
		"\x1b[1A\x1b[J" + "b 4a1b6c012345 [=====               ] 1.0 MB/4.2 MB\n" +
		"\x1b[1A\x1b[J" + "b 4a1b6c012345 done\n" +
		"\x1b[1A\x1b[J" + "podrun: fetched b: 4.2 MB\n"
	if out.String() != want {
		t.Errorf("%q, want\n%q", out.String(), want)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	l := layerBar{image: strings.Repeat("x", 100), Progress: image.Progress{Layer: layer, Status: image.Waiting}}
	if got := l.line(30); len(got) != 29 {
		t.Errorf("%d columns: %q", len(got), got)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12345: "12 kB", 999_600: "1.0 MB", 3_400_000_000: "3.4 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
