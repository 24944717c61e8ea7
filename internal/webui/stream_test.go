package webui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// bound is the timeout of everything in these tests.
const bound = time.Minute

// fakeSource publishes what a test puts into it.
type fakeSource struct {
	logs func(ctx context.Context, of LogRequest, line func(Line)) error

	mu      sync.Mutex
	seen    func([]Object, string)
	things  []Object
	problem string
	used    int64 // number of samples
	use     []Usage
}

func (s *fakeSource) Watch(ctx context.Context, onChange func([]Object, string)) {
	s.mu.Lock()
	s.seen = onChange
	onChange(s.things, s.problem)
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.seen = nil
	s.mu.Unlock()
}

func (s *fakeSource) Use() ([]Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	return s.use, nil
}

func (s *fakeSource) Logs(ctx context.Context, of LogRequest, line func(Line)) error {
	return s.logs(ctx, of, line)
}

func (s *fakeSource) YAML(kind, key string) ([]byte, error) {
	if kind != "pods" {
		return nil, errors.New("kind not found")
	}
	return []byte("name: " + key + "\n"), nil
}

func (s *fakeSource) show(problem string, all ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.things, s.problem = all, problem
	if s.seen != nil {
		s.seen(all, problem)
	}
}

// watched reports whether a caller watches.
func (s *fakeSource) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen != nil
}

func newServer(s Source) *Server {
	return &Server{Source: s, Token: token, Host: "box", Every: time.Hour, Now: time.Now, Stall: bound}
}

// serve serves s for the duration of the test.
func serve(t *testing.T, s *Server) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(bound):
			t.Error("the server does not end")
		}
	})
	return l.Addr()
}

// client is a client that reads a stream.
type client struct {
	t    *testing.T
	body *bufio.Reader
	end  func()
}

func open(t *testing.T, address net.Addr, path string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s, %s", path, answer.Status, answer.Header.Get("Content-Type"))
	}
	return &client{t, bufio.NewReader(answer.Body), func() {
		answer.Body.Close()
		transport.CloseIdleConnections()
		cancel()
	}}
}

// next reads the next message.
func (c *client) next(into any) {
	c.t.Helper()
	for {
		line, err := c.body.ReadString('\n')
		if err != nil {
			c.t.Fatalf("the stream ends: %v", err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				c.t.Fatal(err)
			}
			return
		}
	}
}

// received is an update as a page decodes it.
type received struct {
	Host    string
	Problem string
	Objects struct {
		Pods, Services *struct {
			Keys    []string
			Changed map[string]any
		}
	}
	Use     []any
	History map[string][][3]*float64
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func podOf(name, json string) Object { return Object{"pods", "default/" + name, []byte(json)} }

func TestStateReportsChanges(t *testing.T) {
	source := &fakeSource{things: []Object{podOf("a", `1`), podOf("b", `1`)}}
	c := open(t, serve(t, newServer(source)), "/api/state")
	var first received
	c.next(&first)
	if first.Host != "box" || fmt.Sprint(first.Objects.Pods.Keys, first.Objects.Pods.Changed) != "[default/a default/b] map[default/a:1 default/b:1]" {
		t.Fatalf("at first: %+v", first)
	}
	eventually(t, "a sample was taken", func() bool { source.mu.Lock(); defer source.mu.Unlock(); return source.used > 0 })
	for _, step := range []struct {
		problem string
		things  []Object
		want    string
	}{
		{"", []Object{podOf("a", `1`), podOf("b", `2`)}, "[default/a default/b] map[default/b:2]"},
		{"", []Object{podOf("b", `2`), podOf("c", `1`)}, "[default/b default/c] map[default/c:1]"},
		{"", []Object{podOf("c", `1`)}, "[default/c] map[]"},
		{"", nil, "[] map[]"},
		{"the disk is broken", []Object{podOf("c", `1`), {"services", "default/s", []byte(`1`)}}, "[default/c] map[default/c:1]"},
	} {
		source.show(step.problem, step.things...)
		var u received
		for u.Objects.Pods == nil { // messages with usage come between
			u = received{}
			c.next(&u)
		}
		if got := fmt.Sprint(u.Objects.Pods.Keys, u.Objects.Pods.Changed); got != step.want || u.Host != "" || u.Problem != step.problem {
			t.Errorf("%s instead of %s: %+v", got, step.want, u)
		}
	}
	source.show("", podOf("c", `1`), Object{"services", "default/s", []byte(`2`)})
	var u received
	for u.Objects.Services == nil {
		u = received{}
		c.next(&u)
	}
	if got := fmt.Sprint(u.Objects.Services.Keys, u.Objects.Services.Changed); u.Objects.Pods != nil || got != "[default/s] map[default/s:2]" {
		t.Errorf("a change of one kind: %s, pods %v", got, u.Objects.Pods)
	}
}

func TestYAML(t *testing.T) {
	for query, want := range map[string]string{
		"kind=pods&key=default/web":   "200 text/plain; charset=utf-8 name: default/web\n",
		"kind=Secret&key=default/web": "404 application/json {\"error\":\"kind not found\"}\n",
	} {
		got := answer(t, "GET", "/api/yaml?"+query, nil)
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(got.StatusCode, " ", got.Header.Get("Content-Type"), " ", string(text)); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// Nothing is collected while no page is open; a page that is opened later gets the earlier usage.
func TestLooksOnlyForPages(t *testing.T) {
	source := &fakeSource{things: []Object{podOf("a", `1`)}, use: []Usage{{Key: "default/a", CPU: new(int64(7)), Memory: nil, Detail: "detail"}}}
	s := newServer(source)
	s.Every = time.Millisecond
	address := serve(t, s)
	if source.watched() || source.used != 0 {
		t.Fatal("it looks before a page is open")
	}
	one, two := open(t, address, "/api/state"), open(t, address, "/api/state")
	var u received
	for u.Use == nil {
		one.next(&u)
	}
	two.next(&u)
	one.end()
	source.show("", podOf("a", `2`)) // the other page is notified nevertheless
	for u.Objects.Pods == nil || fmt.Sprint(u.Objects.Pods.Changed) != "map[default/a:2]" {
		u = received{}
		two.next(&u)
	}
	two.end()
	eventually(t, "nobody looks after the last page", func() bool { return !source.watched() })
	source.mu.Lock()
	source.use = nil
	source.mu.Unlock()
	three := open(t, address, "/api/state")
	u = received{}
	three.next(&u)
	if points := u.History["default/a"]; len(points) == 0 || *points[0][1] != 7 || points[0][2] != nil {
		t.Errorf("a page that is opened later sees %v", u.History)
	}
	source.show("") // a pod's history goes with the pod
	three.end()
	four := open(t, address, "/api/state")
	u = received{}
	if four.next(&u); len(u.History) > 0 {
		t.Errorf("of a pod that is gone there is %v", u.History)
	}
}

func TestRingKeepsTheLast(t *testing.T) {
	var r ring
	for i := range maxPoints + 10 {
		r.add(point{at: float64(i)})
	}
	got := r.points()
	if len(got) != maxPoints || got[0].at != 10 || got[maxPoints-1].at != maxPoints+9 {
		t.Errorf("%d points, from %v to %v", len(got), got[0].at, got[len(got)-1].at)
	}
}
