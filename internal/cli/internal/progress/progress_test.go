package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/image"
)

func newTestProgress(width int) (*Bars, *strings.Builder) {
	var out strings.Builder
	clock := time.Unix(0, 0)
	return &Bars{verb: "fetching",
		out: &out, width: width, images: map[string]*imageState{}, byID: map[string]*layerBar{},
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}, &out
}

const layer = "sha256:4a1b6c0123456789"

func TestProgressInAPipe(t *testing.T) {
	p, out := newTestProgress(0)
	p.Update(image.Progress{Image: "a", Layer: "sha256:1", Status: image.Exists})
	p.Done("a") // it was there: nothing to say
	for _, n := range []int64{0, 1 << 20, 2 << 20} {
		p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: n, Total: 3 << 20})
	}
	p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Done, Done: 3 << 20, Total: 3 << 20})
	p.Update(image.Progress{Image: "b", Layer: "sha256:2", Status: image.Done, Done: 500})
	p.Done("b")
	p.End()
	if want := "podrun: fetching b\npodrun: fetched b: 3.1 MB\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestLongProgressInAPipe checks that a long pull prints its progress once a minute if the output is no
// terminal.
func TestLongProgressInAPipe(t *testing.T) {
	p, out := newTestProgress(0)
	for n := range 150 { // seconds
		p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: int64(n) * 1e6, Total: 200e6})
	}
	if want := "podrun: fetching b\npodrun: fetching b: 60 MB so far\npodrun: fetching b: 120 MB so far\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	p, out := newTestProgress(60)
	p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Waiting, Total: -1})
	p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: 1 << 20, Total: 4 << 20})
	p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Done, Done: 4 << 20, Total: 4 << 20})
	p.Done("b")
	p.End()
	want := "b 4a1b6c012345 waiting\n" +
		"\x1b[1A\x1b[J" + "b 4a1b6c012345 [=====               ] 1.0 MB/4.2 MB\n" +
		"\x1b[1A\x1b[J" + "b 4a1b6c012345 done\n" +
		"\x1b[1A\x1b[J" + "podrun: fetched b: 4.2 MB\n"
	if out.String() != want {
		t.Errorf("%q, want\n%q", out.String(), want)
	}
}

// A wait is displayed from a second on, while there is no bar, with its time; other output is above it.
func TestWait(t *testing.T) {
	p, out := newTestProgress(60)
	p.Wait("verifying %s", "a")
	p.began = p.began.Add(500 * time.Millisecond) // the next call of now returns a time half a second later
	p.draw()
	p.Wait("verifying %s", "b\x1b")
	p.draw()
	p.Write([]byte("a ok\n"))
	p.draw()
	p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Waiting, Total: -1})
	p.Wait("verifying c")
	p.End()
	p.draw()
	want := "podrun: verifying b\\u001b: 1s\n\x1b[1A\x1b[J" + "a ok\n" + "podrun: verifying b\\u001b: 2s\n" +
		"\x1b[1A\x1b[J" + "b 4a1b6c012345 waiting\n" + "\x1b[1A\x1b[J"
	if out.String() != want {
		t.Errorf("%q, want\n%q", out.String(), want)
	}
}

func TestWaitInAPipe(t *testing.T) {
	p, out := newTestProgress(0)
	p.Wait("verifying a")
	p.draw()
	p.Write([]byte("a ok\n"))
	p.End()
	if out.String() != "a ok\n" || p.ended != nil {
		t.Errorf("%q", out.String())
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	l := layerBar{image: strings.Repeat("x", 100), Progress: image.Progress{Layer: layer, Status: image.Waiting}}
	for _, width := range []int{1, 10, 30, 60} {
		if got := []rune(l.line(width)); len(got) != width-1 {
			t.Errorf("%d columns: %q", len(got), string(got))
		}
	}
	if got := l.line(40); !strings.HasPrefix(got, "…xxx") || !strings.HasSuffix(got, "x 4a1b6c012345 waiting") {
		t.Errorf("%q", got)
	}
}

func TestProgressHasSpeedAndTimeLeft(t *testing.T) {
	p, out := newTestProgress(100)
	for _, n := range []int64{0, 2e6, 4e6, 6e6} {
		p.Update(image.Progress{Image: "b", Layer: layer, Status: image.Fetching, Done: n, Total: 200e6})
	}
	if want := "b 4a1b6c012345 [                    ] 6.0 MB/200 MB 1.0 MB/s 3m14s\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want it to end with %q", out.String(), want)
	}
}

func TestSpeed(t *testing.T) {
	var s speed
	now := time.Unix(0, 0)
	if got := s.text(5); got != "" {
		t.Errorf("before anything came: %q", got)
	}
	for i := range 1000 { // 1 MB/s, then 3 MB/s
		now = now.Add(100 * time.Millisecond)
		s.add(now, int64(i)*100_000+max(0, int64(i)-500)*200_000)
	}
	if got := s.text(30e6); got != " 3.0 MB/s 10s" {
		t.Errorf("%q", got)
	}
	s.add(now, 0)
	if got := s.text(5); got != "" {
		t.Errorf("started again: %q", got)
	}
	for d, want := range map[time.Duration]string{0: "1s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3*time.Hour + 10*time.Minute: "3h10m", 1000 * time.Hour: "days"} {
		if got := eta(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12345: "12 kB", 999_600: "1.0 MB", 3_400_000_000: "3.4 GB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
