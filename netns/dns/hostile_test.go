package dns

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/podrun/podrun/internal/testenv"
)

func TestForgedAnswersAreIgnored(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.2", func(msg []byte, _ bool) [][]byte {
		good := says("192.0.2.1")(msg, false)[0]
		bad := says("203.0.113.66")(msg, false)[0]
		number := append([]byte(nil), bad...)
		number[0] ^= 1
		question := append([]byte(nil), bad...)
		question[13] ^= 1 // a letter of the name
		query := append([]byte(nil), bad...)
		query[2] &^= 0x80
		return [][]byte{{}, []byte("rubbish"), number, question, query, good}
	})
	path, _ := hostFile(t, "nameserver 127.0.0.2\n")
	if got := asks(t, newResolver(t, path), "a.example A"); got != "192.0.2.1" {
		t.Errorf("answer %q", got)
	}
}

func TestQueryIDIsRandom(t *testing.T) {
	testenv.NoLeaks(t)
	seen := map[byte]bool{}
	var mu sync.Mutex
	serve(t, "127.0.0.2", func(msg []byte, stream bool) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		seen[msg[0]] = true
		return says("192.0.2.1")(msg, stream)
	})
	path, _ := hostFile(t, "nameserver 127.0.0.2\n")
	r := newResolver(t, path)
	for range 20 {
		asks(t, r, "a.example A")
	}
	if len(seen) < 5 {
		t.Errorf("20 queries had %d different first bytes", len(seen))
	}
}

func TestLongAnswers(t *testing.T) {
	testenv.NoLeaks(t)
	// The answer is truncated with UDP; with TCP it contains all that fits.
	long := func(msg []byte, stream bool) [][]byte {
		q, _ := parse(msg, stream)
		var a answer
		for range 4000 {
			a.records = append(a.records, addressRecords(q.question.Name, q.question.Type, addresses("192.0.2.1"))...)
		}
		return [][]byte{q.reply(a)}
	}
	s := serve(t, "127.0.0.2", long)
	path, _ := hostFile(t, "nameserver 127.0.0.2\n")
	r := newResolver(t, path)
	m := unpacked(t, r.answer(packed(t, "a.example A"), false))
	if !m.Truncated || s.asked.Load() != 1 {
		t.Errorf("by UDP: cut %v, asked %d times", m.Truncated, s.asked.Load())
	}
	b := r.answer(packed(t, "a.example A"), true)
	if m := unpacked(t, b); len(m.Answers) != 4000 || m.Truncated || len(b) < 64000 {
		t.Errorf("by TCP: %d records in %d bytes", len(m.Answers), len(b))
	}
}

func TestAnAnswerThatIsLongerThanAsked(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.2", func(msg []byte, _ bool) [][]byte {
		q, _ := parse(msg, true)
		var a answer
		for range 100 {
			a.records = append(a.records, addressRecords(q.question.Name, q.question.Type, addresses("192.0.2.1"))...)
		}
		return [][]byte{q.reply(a)}
	})
	path, _ := hostFile(t, "nameserver 127.0.0.2\n")
	b := newResolver(t, path).answer(packed(t, "a.example A"), false)
	if m := unpacked(t, b); len(b) > plainSize || !m.Truncated {
		t.Errorf("%d bytes, cut %v", len(b), m.Truncated)
	}
}

// A nameserver of the host may run in a pod and query podrun's resolver.
func TestLoopsEnd(t *testing.T) {
	testenv.NoLeaks(t)
	path, _ := hostFile(t, "nameserver 127.0.0.2\noptions timeout:1 attempts:2\n")
	r := New(known, path)
	s := serve(t, "127.0.0.2", func(msg []byte, stream bool) [][]byte {
		if b := r.answer(msg, stream); b != nil {
			return [][]byte{b}
		}
		return nil
	})
	if got := asks(t, r, "a.example A"); got != "ServerFailure" {
		t.Errorf("answer %q", got)
	}
	if n := s.asked.Load(); n > 4 {
		t.Errorf("one query became %d", n)
	}
	r.Close()
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	testenv.NoLeaks(t)
	asked := make(chan struct{}, 10)
	serve(t, "127.0.0.2", func([]byte, bool) [][]byte { asked <- struct{}{}; return nil })
	path, _ := hostFile(t, "nameserver 127.0.0.2\noptions timeout:30\n")
	r := New(known, path)
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() { r.ServeConn(server); close(done) }()
	if err := writeMessage(client, packed(t, "a.example A")); err != nil {
		t.Fatal(err)
	}
	<-asked
	r.Close()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	client.Close()
}

func TestTooManyQueriesAreLost(t *testing.T) {
	testenv.NoLeaks(t)
	release := make(chan struct{})
	s := serve(t, "127.0.0.2", func(msg []byte, stream bool) [][]byte {
		<-release
		return says("192.0.2.1")(msg, stream)
	})
	path, _ := hostFile(t, "nameserver 127.0.0.2\noptions timeout:30 attempts:1\n")
	r := newResolver(t, path)
	var wg sync.WaitGroup
	var lost, served atomic.Int32
	for i := range 2 * maxQueries {
		msg := packed(t, "a.example A", func(m *dnsmessage.Message) {
			m.Questions[0].Name = dnsmessage.MustNewName("n" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".example.")
		})
		wg.Go(func() {
			if r.Answer(msg) == nil {
				lost.Add(1)
			} else {
				served.Add(1)
			}
		})
	}
	await(t, func() bool { return lost.Load() == maxQueries })
	close(release)
	wg.Wait()
	if served.Load() != maxQueries {
		t.Errorf("%d were answered, %d lost, the server was asked %d times", served.Load(), lost.Load(), s.asked.Load())
	}
}
