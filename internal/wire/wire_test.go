package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
)

func connPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

func TestRequestBringsItsDescriptors(t *testing.T) {
	a, b := connPair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = WriteRequest(a, Request{Verb: Exec, Exec: &ExecRequest{Container: "c", Args: []string{"ls", "-l"}}}, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	req, files, err := ReadRequest(b)
	if err != nil || req.Verb != Exec || req.Exec.Args[1] != "-l" || len(files) != 1 {
		t.Fatalf("request %+v with %d descriptors: %v", req, len(files), err)
	}
	if _, err := files[0].WriteString("through"); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(files[0].Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("a received descriptor would be inherited: %v", err)
	}
	files[0].Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "through" {
		t.Errorf("%q: %v", got, err)
	}
}

// Messages follow each other on one connection, whatever their size.
func TestFramesAndControls(t *testing.T) {
	a, b := connPair(t)
	long := strings.Repeat("x", 300_000)
	go func() {
		WriteFrame(a, Frame{Status: &pod.Status{Message: long}})
		WriteFrame(a, Frame{Started: true})
		a.Close()
	}()
	f, _, err := ReadFrame(b)
	if err != nil || f.Status == nil || f.Status.Message != long {
		t.Fatalf("first frame: %v", err)
	}
	if f, _, err := ReadFrame(b); err != nil || !f.Started {
		t.Errorf("second frame %+v: %v", f, err)
	}
	if _, _, err := ReadFrame(b); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestBadMessages(t *testing.T) {
	for name, raw := range map[string]string{
		"too long":  "\xff\xff\xff\xff",
		"cut off":   "\x00\x00\x00\x10{}",
		"half head": "\x00\x00",
		"not JSON":  "\x00\x00\x00\x02xx",
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connPair(t)
			if _, err := a.Write([]byte(raw)); err != nil {
				t.Fatal(err)
			}
			a.Close()
			if req, _, err := ReadRequest(b); err == nil {
				t.Errorf("was taken for %+v", req)
			}
		})
	}
}

// A client that only connects has no request.
func TestNoRequest(t *testing.T) {
	a, b := connPair(t)
	a.Close()
	if req, _, err := ReadRequest(b); req != nil || err != nil {
		t.Errorf("request %+v: %v", req, err)
	}
}
