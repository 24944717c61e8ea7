package runner

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// joinFromStart attaches to a container, and wants what it has written before, too.
func (p *testPod) joinFromStart(container string, stdin bool) (*attached, *wire.Error) {
	p.t.Helper()
	conn, err := p.place.Dial()
	if err != nil {
		p.t.Fatal(err)
	}
	return joinBy(p.t, conn, wire.JoinRequest{Container: container, Stdin: stdin, FromStart: true})
}

// hears waits for a text that must come next, to the byte.
func (a *attached) hears(want string) {
	a.t.Helper()
	a.pipe.SetReadDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(a.out, got); err != nil || string(got) != want {
		same := 0
		for same < n && got[same] == want[same] {
			same++
		}
		a.t.Fatalf("after %d bytes as they should be: %.60q, %v; want %.60q", same, got[same:n], err, want[same:])
	}
}

// Whoever comes while a program writes hears each byte of it once, from the first one on:
// of whole lines, of one that is begun, and of a terminal.
func TestJoinFromStart(t *testing.T) {
	for name, tty := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			c := shell(layer(t), "a", `stty -echo 2> /dev/null; i=0; while [ $i -lt 1500 ]; do printf "line $i"; printf " is whole\n"; i=$((i+1)); done; printf half; read x; echo " a $x"; read x; exit 3`)
			c.TTY, c.Stdin = tty, true
			p := start(t, newPlan(nil, []pod.Container{c}))
			p.running()
			var all []*attached
			come := func() {
				a, err := p.joinFromStart("a", true)
				if err != nil {
					t.Fatal(err.Message)
				}
				all = append(all, a)
			}
			for range 30 {
				come()
			}
			eol := "\n"
			if tty {
				eol = "\r\n"
			}
			var text strings.Builder
			for i := range 1500 {
				fmt.Fprintf(&text, "line %d is whole%s", i, eol)
			}
			text.WriteString("half")
			all[0].hears(text.String())
			come()
			all[0].say("line\n")
			rest := " a line" + eol
			all[0].hears(rest)
			come() // everything is in the log by now, or about to be
			for i, a := range all {
				if i > 0 {
					a.hears(text.String() + rest)
				}
			}
			all[0].say("\n")
			for _, a := range all {
				if more, err := io.ReadAll(a.out); err != nil || len(more) > 0 {
					t.Errorf("heard once more: %.60q, %v", more, err)
				}
				a.ends(3)
			}
			if _, err := p.joinFromStart("a", false); err == nil || err.Message != "container a is not running" {
				t.Errorf("join after the end: %+v", err)
			}
		})
	}
}

// Who comes when more was written than there is room for is told how much is missing.
func TestJoinFromStartWithoutRoom(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `head -c 200000 /dev/zero; read x`)
	c.Stdin = true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	p.eventually("written", func([]pod.Event) bool { return len(p.log("a")) >= 200_000 })
	late, err := p.joinFromStart("a", true)
	if err != nil {
		t.Fatal(err.Message)
	}
	late.hears(strings.Repeat("\x00", 60_000))
	late.say("\n")
	late.hear("bytes are missing here; podrun logs p has them")
	late.ends(0)
}
