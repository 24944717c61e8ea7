package attach

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/wire"
)

// socketPair returns connected sockets: the session's and the supervisor's.
func socketPair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

// TestEnd: the answer is the exit code; anything else is an error.
func TestEnd(t *testing.T) {
	exit := 3
	for want, frame := range map[string]*wire.Frame{
		"": {Exit: &exit}, "unexpected reply of the supervisor to attach": {Started: true}, "EOF": nil,
	} {
		ours, theirs := socketPair(t)
		if frame != nil {
			if err := wire.WriteFrame(theirs, *frame); err != nil {
				t.Fatal(err)
			}
		}
		theirs.Close()
		code, err := (&attachConn{UnixConn: ours}).end()
		if want == "" && (code != exit || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d, %v, want %q", code, err, want)
		}
	}
}

// TestFeed: input reaches the container; its end and the keys that detach end the attachment, and those keys are not
// input.
func TestFeed(t *testing.T) {
	for _, tt := range []struct {
		in, written string
		terminal    bool
		want        error
	}{
		{"ls\n", "ls\n", false, nil},
		{"ls\x10\x11", "ls\x10\x11", false, nil},
		{"ls\x10\x11more", "ls", true, tty.ErrDetached},
		{"ls\x10", "ls", true, nil},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		a := &Session{Env: &cmdutil.Env{In: strings.NewReader(tt.in)}, Keys: []byte{0x10, 0x11}, left: make(chan error, 1)}
		if tt.terminal {
			a.Terminal = r // any file
		}
		a.input.Store(w)
		a.feed()
		w.Close()
		written, err := io.ReadAll(r)
		r.Close()
		if left := <-a.left; !errors.Is(left, tt.want) || (left == nil) != (tt.want == nil) || err != nil || !strings.HasPrefix(string(written), tt.written) || strings.Contains(string(written), "more") {
			t.Errorf("%q: %q is written, left by %v; %v", tt.in, written, left, err)
		}
	}
}
