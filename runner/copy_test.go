package runner

import (
	"archive/tar"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// A client that is suspended in the middle of a copy holds neither container nor pod.
func TestCopyHoldsNoPod(t *testing.T) {
	testenv.NoLeaks(t)
	p := start(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "truncate -s 1G /big; echo there; exec sleep 1000")}))
	p.running()
	for p.log("a") != "there\n" {
	}
	for name, in := range map[string]bool{"out": false, "in": true} {
		conn, err := p.place.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		theirs, ours := w, r
		if in {
			theirs, ours = r, w
		}
		req := wire.CopyRequest{Container: "a", Path: "/big", In: in, As: "big"}
		if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Copy, Copy: &req}, theirs); err != nil {
			t.Fatal(name, err)
		}
		if in { // it has begun when it takes what a pipe does not hold
			h := tar.NewWriter(ours)
			if err := h.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1 << 30}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(h, strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20); err != nil {
				t.Fatal(err)
			}
		} else if _, err := ours.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	p.stop(0)
}
