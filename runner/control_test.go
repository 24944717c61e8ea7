package runner

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
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

// The terminal of an exec is its process's controlling terminal and has the requested size.
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

// When a client disconnects its process is killed; the pod's end does not wait for it.
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
	if rest, err := out.ReadString('\n'); err == nil || rest != "" { // end of file: the process was killed
		t.Errorf("%q %v", rest, err)
	}
}

// A program whose execve takes long, as when its file system does not answer, blocks nothing: its container
// counts as running, and the pod can be stopped.
func TestAProgramThatIsLongExecuted(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	program := filepath.Join(l, "bin", "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Opening a file with a lease blocks until the lease is released.
	lease, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	c := shell(l, "a", "")
	c.Args = []string{"program"}
	begun := time.Now()
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	if took := time.Since(begun); took < 10*time.Second {
		t.Errorf("it runs after %v: it did not have to wait", took)
	}
	if st := p.stop(0); st.Containers[0].State.Terminated == nil {
		t.Errorf("it has not ended: %+v", st)
	}
}

// A container that exits while commands are being started in it ends completely, and no process of the
// commands is left.
func TestContainerEndsWhileCommandsStart(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for range 10 {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "usleep 150000"), shell(l, "b", "exec sleep 1000")})
		plan.RestartPolicy = pod.RestartNever
		p := start(t, plan)
		st := p.until("begun", func(st pod.Status) bool { return st.Phase == pod.Running })
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for code := 0; code == 0; {
					code, _ = p.request(&wire.ExecRequest{Container: "a", Args: []string{"true"}})
				}
			})
		}
		asking.Wait()
		ended := func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil }
		if !ended(st) {
			p.until("a's end", ended)
		}
		p.stop(0)
	}
}

// S27: only the pod's user can use its socket.
func TestControlSocketIsPrivate(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	for path, want := range map[string]os.FileMode{
		w.place.RuntimeDir(): 0o700, w.place.DataDir(): 0o700,
		filepath.Join(w.place.RuntimeDir(), "control.sock"): 0o600,
	} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v: %v", path, st.Mode().Perm(), want, err)
		}
	}
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil || strings.Contains(string(b), "@") {
		t.Errorf("there is an abstract socket: %v\n%s", err, b)
	}
	// Even if the directories are open to all, another user gets no answer.
	err = asOtherUser(w)
	if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("another user's request: %v", err)
	}
}

// asOtherUser requests the status on a connection made with another user's id.
func asOtherUser(w wholePod) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	if err := os.Chmod(filepath.Join(w.place.RuntimeDir(), "control.sock"), 0o666); err != nil {
		return err
	}
	addr := &unix.SockaddrUnix{Name: shortPath(w)}
	result := make(chan error)
	go func() { // only this thread's ids change, and the thread ends with the goroutine
		runtime.LockOSThread()
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 1000, ^uintptr(0)); e != 0 {
			result <- e
			return
		}
		result <- errors.Join(raiseCapabilities(), unix.Connect(fd, addr))
	}()
	if err := <-result; err != nil {
		return err
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer conn.Close()
	uc := conn.(*net.UnixConn)
	if err := wire.WriteRequest(uc, wire.Request{Verb: wire.Watch}); err != nil {
		return err
	}
	_, _, err = wire.ReadFrame(uc)
	return err
}

// shortPath returns a short path of the socket, through a descriptor of its directory.
func shortPath(w wholePod) string {
	dir, err := os.Open(w.place.RuntimeDir())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	return fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd())
}

// raiseCapabilities restores the capabilities that the thread lost with its change of user, so that it can
// reach the socket.
func raiseCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Effective, data[1].Effective = data[0].Permitted, data[1].Permitted
	return unix.Capset(&head, &data[0])
}

// A client that is suspended in the middle of a copy blocks neither the container nor the pod.
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
		if in { // the copy runs when it has read more than a pipe holds
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

// A pod whose removal was requested removes itself when it has ended, without the client and despite later
// requests. The exit of another pod stays recorded.
func TestEndOfARemovedPod(t *testing.T) {
	for name, removes := range map[string][]bool{
		"stopped": {false}, "removing": {true}, "removing, then stopped": {true, false}, "stopped, then removing": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "app", "exec sleep 1000")}))
			w.until(running)
			leaves := false
			for i, remove := range removes {
				grace := int64(1000) // it ignores SIGTERM
				if i == len(removes)-1 {
					grace = 0
				}
				leaves = leaves || remove
				conn := w.dial()
				if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: &grace, Remove: remove}}); err != nil {
					t.Fatal(err)
				}
				if grace > 0 {
					w.until(func(st *pod.Status) bool { return st.Deleting })
				}
				conn.Close() // no client waits for its end
			}
			if leaves {
				for deadline := time.Now().Add(time.Minute); w.place.HasRemains(); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("it is still there")
					}
				}
				return
			}
			lock, err := w.place.WaitLock()
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if st, err := w.place.Status(); err != nil || !st.Phase.Terminal() || !st.Deleting {
				t.Errorf("it ended with %+v (%v)", st, err)
			}
		})
	}
}

// The error for a known request without its parameters is not the one for an unknown request.
func TestRequestLacksItsParameters(t *testing.T) {
	c := newControl(nil)
	for verb, want := range map[wire.Verb]string{wire.Stop: `request "stop" lacks its parameters`, "nonsense": `unknown request "nonsense"`} {
		serve := handlers[verb]
		if serve == nil {
			serve = unknown
		}
		if err := serve(c, nil, &wire.Request{Verb: verb}, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", verb, err, want)
		}
	}
}
