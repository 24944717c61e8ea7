package runner

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

func TestExec(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	c := shell(l, "a", "exec sleep 1000")
	c.Env, c.Cwd = append(c.Env, "WHO=image"), "/tmp"
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	tests := []struct {
		name string
		req  wire.ExecRequest
		code int
		out  string
	}{
		{"output and code", wire.ExecRequest{Args: []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 7"}}, 7, "out\nerr\n"},
		{"environment and directory", wire.ExecRequest{Args: []string{"sh", "-c", "echo $WHO; pwd"}}, 0, "image\n/tmp\n"},
		{"own environment and directory", wire.ExecRequest{Args: []string{"sh", "-c", "echo $WHO; pwd"}, Env: []string{"WHO=me"}, Cwd: "/etc"}, 0, "me\n/etc\n"},
		{"killed", wire.ExecRequest{Args: []string{"sh", "-c", "kill -9 $$"}}, 137, ""},
		{"in the container's processes", wire.ExecRequest{Args: []string{"sh", "-c", "until grep -q ^sleep /proc/1/cmdline; do usleep 1000; done; cat /proc/1/cmdline"}}, 0, "sleep\x001000\x00"},
		{"no such program", wire.ExecRequest{Args: []string{"/bin/nope"}}, 127, "no such file"},
		{"not on the PATH", wire.ExecRequest{Args: []string{"nope"}}, 127, "not found in $PATH"},
		{"not executable", wire.ExecRequest{Args: []string{"/etc/passwd"}}, 126, "permission denied"},
		{"no command", wire.ExecRequest{}, 125, "no command"},
		{"no such container", wire.ExecRequest{Container: "b", Args: []string{"true"}}, 125, "container b is not running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.req.Container == "" {
				tt.req.Container = "a"
			}
			code, out := p.request(&tt.req)
			if code != tt.code || !strings.Contains(out, tt.out) {
				t.Errorf("exit code %d and %q, want %d and %q", code, out, tt.code, tt.out)
			}
		})
	}
}

// A terminal of its own: a controlling one, of the size asked for.
func TestExecWithTerminal(t *testing.T) {
	testenv.NoLeaks(t)
	p := start(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	p.running()
	conn, err := p.place.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: &wire.ExecRequest{
		Container: "a", Args: []string{"/bin/sh", "-c", "tty; stty size; echo $TERM; read x; echo got $x"}, TTY: true, Term: "vt100", Rows: 33, Cols: 77,
	}})
	if err != nil {
		t.Fatal(err)
	}
	f, files, err := wire.ReadFrame(conn)
	if err != nil || !f.Started || len(files) != 1 {
		t.Fatalf("first frame %+v with %d descriptors: %v", f, len(files), err)
	}
	defer files[0].Close()
	master := bufio.NewReader(files[0])
	for _, want := range []string{"/dev/pts/", "33 77", "vt100"} {
		if line, err := master.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("terminal said %q (%v), want %q", line, err, want)
		}
	}
	if _, err := files[0].WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hello", "got hello"} { // its echo, and the answer
		if line, err := master.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Errorf("terminal said %q (%v), want %q", line, err, want)
		}
	}
	if f, _, err := wire.ReadFrame(conn); err != nil || f.Exit == nil || *f.Exit != 0 {
		t.Errorf("last frame %+v: %v", f, err)
	}
}

// A client that goes away takes its process with it; the pod's end does not wait.
func TestExecEndsWithItsClient(t *testing.T) {
	testenv.NoLeaks(t)
	p := start(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	p.running()
	conn, err := p.place.Dial()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: &wire.ExecRequest{Container: "a", Args: []string{"/bin/sh", "-c", "echo on; exec sleep 2000"}}}, r, w, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); err != nil || line != "on\n" {
		t.Fatalf("%q %v", line, err)
	}
	conn.Close()
	if rest, err := out.ReadString('\n'); err == nil || rest != "" { // the end of its output: it has been killed
		t.Errorf("%q %v", rest, err)
	}
}
