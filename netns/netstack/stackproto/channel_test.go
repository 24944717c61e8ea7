package stackproto

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// channels returns both ends of a channel.
func channels(t *testing.T) (near, far *Channel) {
	t.Helper()
	here, away, err := SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		t.Fatal(err)
	}
	there, err := socketOf(away)
	if err != nil {
		t.Fatal(err)
	}
	near, far = &Channel{Conn: here}, &Channel{Conn: there}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestChannel: a message arrives as it was sent, with duplicates of its descriptors; the end of the channel is an error.
func TestChannel(t *testing.T) {
	near, far := channels(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, want := range []Message{
		{Verb: VerbPause},
		{Verb: VerbStart, Config: &Config{Slot: 7, HostLoopback: true, Names: true}},
		{Verb: VerbConnection, From: netip.MustParseAddrPort("[2001:db8::1]:5000"), Port: 80},
		{Verb: VerbPaused, Done: true},
		{Verb: VerbStarted, Error: "no device"},
	} {
		var fds []int
		if want.Port != 0 {
			fds = []int{int(r.Fd()), int(w.Fd())}
		}
		if err := near.Send(want, fds...); err != nil {
			t.Fatal(err)
		}
		got, files, err := far.Receive()
		if err != nil || len(files) != len(fds) {
			t.Fatalf("%s: %d files, %v", want.Verb, len(files), err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Error(diff)
		}
		if len(files) == 2 {
			if _, err := files[1].WriteString("x"); err != nil {
				t.Error(err)
			}
			if n, err := r.Read(make([]byte, 8)); n != 1 || err != nil {
				t.Errorf("the duplicate is of another pipe: %d, %v", n, err)
			}
		}
		CloseAll(files)
	}
	near.Close()
	if _, _, err := far.Receive(); err == nil {
		t.Error("a closed channel has a message")
	}
	if err := far.Send(Message{Verb: VerbResume}); !errors.Is(err, unix.EPIPE) {
		t.Errorf("sent to nobody: %v", err)
	}
}

// TestDatagrams: datagrams of every size pass, the empty one too, which is not the end.
func TestDatagrams(t *testing.T) {
	near, far := channels(t)
	out, in := DatagramConn{near.Conn}, DatagramConn{far.Conn}
	held := Buffers.Get().(*[MaxDatagram]byte)
	defer Buffers.Put(held)
	for _, size := range []int{0, 1, 1500, 65507} {
		want := bytes.Repeat([]byte{7}, size)
		if n, err := out.Write(want); n != size || err != nil {
			t.Fatalf("%d of %d bytes: %v", n, size, err)
		}
		if n, err := in.Read(held[:]); err != nil || !bytes.Equal(held[:n], want) {
			t.Errorf("%d of %d bytes: %v", n, size, err)
		}
	}
	near.Close()
	if _, err := in.Read(held[:]); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

func TestSocketOfAFile(t *testing.T) {
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if c, err := SocketOf(file); err == nil {
		c.Close()
		t.Error("a file is a socket")
	}
}
