package rawsys_test

import (
	"io"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// listen returns a non-blocking listening socket and its address.
func listen(t *testing.T, family int, address string) (fd int, bound netip.AddrPort) {
	t.Helper()
	fd, err := rawsys.Socket(family, unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rawsys.Close(fd) })
	if err := rawsys.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR); err != nil || n == 0 {
		t.Fatalf("the option is %d: %v", n, err)
	}
	if err := rawsys.Bind(fd, netip.MustParseAddrPort(address), 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	return fd, nameOf(t, fd)
}

func nameOf(t *testing.T, fd int) netip.AddrPort {
	t.Helper()
	switch a, err := unix.Getsockname(fd); a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	default:
		t.Fatal(err)
		return netip.AddrPort{}
	}
}

func wait(t *testing.T, fd int, events int16) {
	t.Helper()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 10_000); n != 1 || err != nil {
		t.Fatalf("nothing comes: %v", err)
	}
}

func TestConnectionOfEachFamily(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	for family, address := range map[int]string{unix.AF_INET: "127.0.0.1:0", unix.AF_INET6: "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			listener, to := listen(t, family, address)
			if to.Addr() != netip.MustParseAddrPort(address).Addr() || to.Port() == 0 {
				t.Fatalf("it listens to %v", to)
			}
			client, err := rawsys.Socket(family, unix.SOCK_STREAM)
			if err != nil {
				t.Fatal(err)
			}
			defer rawsys.Close(client)
			if err := rawsys.Connect(client, to, 0); err != nil && err != unix.EINPROGRESS {
				t.Fatal(err)
			}
			wait(t, listener, unix.POLLIN)
			server, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			if err != nil {
				t.Fatal(err)
			}
			defer rawsys.Close(server)
			if flags, err := unix.FcntlInt(uintptr(client), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
				t.Errorf("it may block: %#o, %v", flags, err)
			}
			if flags, err := unix.FcntlInt(uintptr(client), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("programs inherit it: %#o, %v", flags, err)
			}
			b := make([]byte, 10)
			if _, err := rawsys.Read(server, b); err != unix.EAGAIN {
				t.Errorf("nothing has been said: %v", err)
			}
			if n, err := rawsys.Write(client, []byte("one ")); n != 4 || err != nil {
				t.Errorf("%d: %v", n, err)
			}
			if n, err := rawsys.Send(client, []byte("two"), unix.MSG_NOSIGNAL); n != 3 || err != nil {
				t.Errorf("%d: %v", n, err)
			}
			if err := rawsys.Shutdown(client, unix.SHUT_WR); err != nil {
				t.Error(err)
			}
			wait(t, server, unix.POLLRDHUP)
			if n, err := rawsys.Read(server, b); err != nil || string(b[:n]) != "one two" {
				t.Errorf("%q: %v", b[:max(n, 0)], err)
			}
			if n, err := rawsys.Read(server, b); n != 0 || err != nil {
				t.Errorf("after the end there are %d: %v", n, err)
			}
		})
	}
}

func TestErrorsAreTheKernels(t *testing.T) {
	testenv.NoLeaks(t)
	if _, err := rawsys.Socket(unix.AF_INET, 99); err != unix.EINVAL {
		t.Errorf("socket: %v", err)
	}
	if err := rawsys.Connect(-1, netip.MustParseAddrPort("127.0.0.1:1"), 0); err != unix.EBADF {
		t.Errorf("connect: %v", err)
	}
	if err := rawsys.Shutdown(-1, unix.SHUT_WR); err != unix.EBADF {
		t.Errorf("shutdown: %v", err)
	}
	if err := rawsys.EpollCtl(-1, unix.EPOLL_CTL_ADD, -1, &unix.EpollEvent{}); err != unix.EBADF {
		t.Errorf("control: %v", err)
	}
	if n, err := rawsys.EpollWait(-1, make([]unix.EpollEvent, 1), 0); n != -1 || err != unix.EBADF {
		t.Errorf("wait: %d, %v", n, err)
	}
}

func TestWaitAndSplice(t *testing.T) {
	testenv.NoLeaks(t)
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer rawsys.Close(epoll)
	var from, to [2]int
	for _, pipe := range []*[2]int{&from, &to} {
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
	}
	rest := os.NewFile(uintptr(from[0]), "rest") // which closes it
	defer rest.Close()
	defer rawsys.Close(to[0])
	defer rawsys.Close(to[1])
	if err := rawsys.EpollCtl(epoll, unix.EPOLL_CTL_ADD, from[0], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: 7}); err != nil {
		t.Fatal(err)
	}
	events := make([]unix.EpollEvent, 2)
	wait := func() (n int, err error) {
		for n, err = rawsys.EpollWait(epoll, events, 1); err == unix.EINTR; { // a signal of Go's scheduler
			n, err = rawsys.EpollWait(epoll, events, 1)
		}
		return n, err
	}
	if n, err := wait(); n != 0 || err != nil {
		t.Fatalf("nothing has happened: %d, %v", n, err)
	}
	rawsys.Write(from[1], []byte("word"))
	rawsys.Close(from[1])
	if n, err := wait(); n != 1 || err != nil || events[0].Fd != 7 {
		t.Fatalf("%d of %v: %v", n, events, err)
	}
	if n, err := rawsys.Splice(from[0], to[1], 3); n != 3 || err != nil {
		t.Fatalf("%d: %v", n, err)
	}
	got := make([]byte, 9)
	if n, err := rawsys.Read(to[0], got); err != nil || string(got[:n]) != "wor" {
		t.Errorf("%q: %v", got[:max(n, 0)], err)
	}
	if b, err := io.ReadAll(rest); err != nil || string(b) != "d" {
		t.Errorf("%q: %v", b, err)
	}
}
