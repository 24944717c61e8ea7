package webui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/httpserver"
)

func TestLogs(t *testing.T) {
	source := &fakeSource{logs: func(ctx context.Context, of LogRequest, line func(Line)) error {
		line(Line{"app", "noon", "stderr", fmt.Sprintf("%+v", of)})
		if of.Pod == "gone" {
			return errors.New("there is no such pod")
		}
		return nil
	}}
	address := serve(t, newServer(source))
	for query, want := range map[string]string{
		"namespace=default&pod=web":                                 `[[app noon stderr {Namespace:default Pod:web Container: Previous:false Tail:1000}]] `,
		"namespace=n&pod=web&container=app&previous=1&tail=5":       `[[app noon stderr {Namespace:n Pod:web Container:app Previous:true Tail:5}]] `,
		"namespace=n&pod=web&tail=99999999":                         `[[app noon stderr {Namespace:n Pod:web Container: Previous:false Tail:5000}]] `,
		"namespace=n&pod=gone&tail=-1":                              `[[app noon stderr {Namespace:n Pod:gone Container: Previous:false Tail:1000}]] there is no such pod`,
		"namespace=n&pod=gone&tail=1000000000000000000000000000000": `[[app noon stderr {Namespace:n Pod:gone Container: Previous:false Tail:1000}]] there is no such pod`,
	} {
		c := open(t, address, "/api/logs?"+query)
		var all logBatch
		for !all.End {
			var m logBatch
			c.next(&m)
			all.Lines, all.End, all.Error = append(all.Lines, m.Lines...), m.End, m.Error
		}
		if got := fmt.Sprint(all.Lines, " ", all.Error); got != want {
			t.Errorf("%s:\n%s instead of\n%s", query, got, want)
		}
		c.end()
	}
}

// However much is written while a page does not read, only a bounded tail is kept.
func TestBacklogIsBounded(t *testing.T) {
	b := &backlog{wake: make(chan struct{}, 1)}
	for i := range 100_000 {
		b.add(Line{Text: fmt.Sprint(i)})
	}
	m := b.take()
	if len(m.Lines) != keptLines || m.Skipped != 100_000-keptLines || m.Lines[keptLines-1][3] != "99999" {
		t.Errorf("%d lines are kept, %d not", len(m.Lines), m.Skipped)
	}
	for range 1000 {
		b.add(Line{Text: strings.Repeat("x", 16<<10)})
	}
	if m := b.take(); len(m.Lines) > keptBytes>>14 || len(m.Lines)+m.Skipped != 1000 {
		t.Errorf("%d long lines are kept, %d not", len(m.Lines), m.Skipped)
	}
	if m := b.take(); len(m.Lines) != 0 || m.Skipped != 0 {
		t.Errorf("what was taken is there: %v", m)
	}
}

// A client that does not read its response is disconnected, and its goroutines end.
func TestClientThatDoesNotRead(t *testing.T) {
	source := &fakeSource{}
	s := newServer(source)
	s.Stall = 100 * time.Millisecond
	address := serve(t, s).String()
	eventually(t, "it is served", func() bool { // at once, or it was too slow to ask
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /api/state HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token)
		conn.SetReadDeadline(time.Now().Add(bound))
		n, err := conn.Read(make([]byte, 1))
		return err == nil && n == 1
	})
	big := strings.Repeat("x", 4<<20)
	n := 0
	eventually(t, "it is left", func() bool {
		n++
		source.show("", podOf("a", fmt.Sprintf(`"%d %s"`, n, big)))
		return !source.watched()
	})
}

// A client that does not send its request is disconnected, too.
func TestClientThatDoesNotAsk(t *testing.T) {
	s := newServer(&fakeSource{})
	s.Stall = 100 * time.Millisecond
	conn, err := net.Dial("tcp", serve(t, s).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: loc")
	conn.SetReadDeadline(time.Now().Add(bound))
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is not left: %v", err)
	}
}

// Connections that are idle, have begun a request, or had one answered do not block new ones: the
// connection that was idle for longest is closed. Streams continue.
func TestIdleConnectionsShutNobodyOut(t *testing.T) {
	source := &fakeSource{}
	address := serve(t, newServer(source))
	ask := func(c net.Conn) error {
		c.SetDeadline(time.Now().Add(bound))
		fmt.Fprint(c, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return err
	}
	for name, first := range map[string]string{"silent": "", "half a request": "GET / HTTP/1.1\r\nHost: loc", "a request": "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			stream := open(t, address, "/api/state")
			var all []net.Conn
			for range 2 * httpserver.MaxConns {
				c, err := net.Dial("tcp", address.String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				fmt.Fprint(c, first)
				all = append(all, c)
			}
			c, err := net.Dial("tcp", address.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := ask(c); err != nil {
				t.Errorf("a browser is shut out: %v", err)
			}
			closed := make(chan bool, len(all))
			for _, c := range all {
				c.SetReadDeadline(time.Now().Add(bound))
				go func() {
					_, err := io.Copy(io.Discard, c)
					closed <- !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed)
				}()
			}
			for range len(all) + 2 - httpserver.MaxConns { // in addition to the stream and the browser
				if !<-closed {
					t.Fatalf("more than %d connections are open", httpserver.MaxConns)
				}
			}
			source.show("", podOf("a", `"`+name+`"`))
			for m := any(nil); !strings.Contains(fmt.Sprint(m), name); {
				stream.next(&m)
			}
			stream.end()
		})
	}
}

func TestStreamsAreLimited(t *testing.T) {
	address := serve(t, newServer(&fakeSource{}))
	for range maxStreams {
		open(t, address, "/api/state")
	}
	r, err := http.NewRequest("GET", "http://"+address.String()+"/api/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "close some") {
		t.Errorf("one too many: %s %s", answer.Status, text)
	}
}
