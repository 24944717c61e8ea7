package dns

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/podrun/podrun/internal/testenv"
)

// resolver is a resolver of the host in these tests: it passes every query to its function does.
type resolver struct {
	asked  atomic.Int32
	does   func(msg []byte, stream bool) [][]byte
	closed sync.WaitGroup
}

// serve answers at port 53 of an address of this namespace's loopback.
func serve(t *testing.T, address string, does func(msg []byte, stream bool) [][]byte) *resolver {
	t.Helper()
	testenv.LoopbackUp(t)
	s := &resolver{does: does}
	u, err := net.ListenPacket("udp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	s.closed.Go(func() {
		b := make([]byte, maxSize)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			s.asked.Add(1)
			msg := append([]byte(nil), b[:n]...)
			s.closed.Go(func() {
				for _, answer := range s.does(msg, false) {
					u.WriteTo(answer, from)
				}
			})
		}
	})
	s.closed.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.closed.Go(func() {
				defer c.Close()
				msg, err := readMessage(c)
				if err != nil {
					return
				}
				s.asked.Add(1)
				for _, answer := range s.does(msg, true) {
					writeMessage(c, answer)
				}
			})
		}
	})
	t.Cleanup(func() {
		u.Close()
		l.Close()
		s.closed.Wait()
	})
	return s
}

// says returns a function that answers every query with an address.
func says(address string) func([]byte, bool) [][]byte {
	return func(msg []byte, _ bool) [][]byte {
		q, _ := parse(msg, true)
		return [][]byte{q.reply(answer{records: addressRecords(q.question.Name, q.question.Type, addresses(address))})}
	}
}

func fails(code dnsmessage.RCode) func([]byte, bool) [][]byte {
	return func(msg []byte, _ bool) [][]byte {
		q, _ := parse(msg, true)
		return [][]byte{q.reply(answer{code: code})}
	}
}

func silent([]byte, bool) [][]byte { return nil }

// hostFile returns the path of the host's resolv.conf and a function that replaces its content.
func hostFile(t *testing.T, text string) (path string, write func(string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "resolv.conf")
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	return path, write
}

// asks returns the answer of a resolver with that file.
func asks(t *testing.T, r *Resolver, q string) string {
	t.Helper()
	m := unpacked(t, r.Answer(packed(t, q)))
	if m.ID != 4711 {
		t.Errorf("%s: the answer's number is %d", q, m.ID)
	}
	return spelled(answer{code: m.RCode, records: m.Answers}, "", true)
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(errors.New("it does not happen"))
		}
	}
}
