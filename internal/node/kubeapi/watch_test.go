package kubeapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// recorder writes down the calls of a watch.
type recorder chan string

func (r recorder) Replace(items []*corev1.Pod) {
	text := "list"
	for _, p := range items {
		text += " " + p.Name
	}
	r <- text
}

func (r recorder) Event(kind watch.EventType, p *corev1.Pod) { r <- string(kind) + " " + p.Name }
func (r recorder) Failed(err error)                          { r <- "failed: " + err.Error() }

// A step answers one request.
type step struct {
	want   string // what the server receives: the resourceVersion, after "list" or "watch"
	answer func(w http.ResponseWriter, r *http.Request)
}

func text(s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func object(name string, version int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version)
}

func list(version int, items ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(items, ","))
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

// open sends events and keeps the watch open.
func open(events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Join(events, ""))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// cut sends events and closes the connection.
func cut(events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Join(events, ""))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func refuse(code int, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, message, code) }
}

func gone(message string) string {
	return fmt.Sprintf(`{"kind":"Status","status":"Failure","message":%q,"reason":"Expired","code":410}`, message)
}

// TestWatch plays a server's answers, and compares what it receives and what the handler receives.
func TestWatch(t *testing.T) {
	begin := step{"list 0", text(list(5, object("a", 3)))}
	for _, c := range []struct {
		name  string
		steps []step
		want  []string // calls of the handler; a failure contains the text
	}{
		{"events and a bookmark", []step{
			begin,
			{"watch 5", open(event("ADDED", object("b", 6)), event("MODIFIED", object("a", 7)), event("DELETED", object("b", 8)), event("BOOKMARK", object("", 9)))},
		}, []string{"list a", "ADDED b", "MODIFIED a", "DELETED b"}},
		{"a watch that ends is continued at the bookmark", []step{
			begin,
			{"watch 5", text(event("ADDED", object("b", 6)) + event("BOOKMARK", object("", 9)))},
			{"watch 9", open(event("ADDED", object("c", 10)))},
		}, []string{"list a", "ADDED b", "ADDED c"}},
		{"a cut connection is continued", []step{
			begin,
			{"watch 5", cut(event("ADDED", object("b", 6)), `{"type":"ADDED","obj`)},
			{"watch 6", open(event("ADDED", object("c", 7)))},
		}, []string{"list a", "ADDED b", "failed: watch /pods: read an event", "ADDED c"}},
		{"a cut connection is continued, HTTP/1.1", []step{
			begin,
			{"watch 5", cut(event("ADDED", object("b", 6)))},
			{"watch 6", open(event("ADDED", object("c", 7)))},
		}, []string{"list a", "ADDED b", "failed: watch /pods: read an event", "ADDED c"}},
		{"410 as an event: listed again, as of now", []step{
			begin,
			{"watch 5", text(event("ADDED", object("b", 6)) + event("ERROR", gone("too old")))},
			{"list ", text(list(20, object("z", 15)))},
			{"watch 20", open()},
		}, []string{"list a", "ADDED b", "list z"}},
		{"410 as an answer", []step{
			begin,
			{"watch 5", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410); io.WriteString(w, gone("too old")) }},
			{"list ", text(list(20))},
			{"watch 20", open()},
		}, []string{"list a", "list"}},
		{"garbage: listed again", []step{
			begin,
			{"watch 5", open(event("ADDED", object("b", 6)), "<html>")},
			{"list 6", text(list(7, object("a", 3), object("b", 6)))},
			{"watch 7", open()},
		}, []string{"list a", "ADDED b", "failed: not valid: invalid character", "list a b"}},
		{"an unknown event", []step{begin, {"watch 5", open(event("HELLO", object("b", 6)))}, {"list 5", open()}},
			[]string{"list a", `failed: the type "HELLO" is unknown`}},
		{"an event without an object", []step{begin, {"watch 5", open(`{"type":"ADDED"}`)}, {"list 5", open()}},
			[]string{"list a", "failed: not valid"}},
		{"an object that is null", []step{begin, {"watch 5", open(event("DELETED", "null"))}, {"list 5", open()}},
			[]string{"list a", "failed: the object has no resourceVersion"}},
		{"an event that is too large", []step{begin, {"watch 5", open(event("ADDED", `"`+strings.Repeat("x", 11<<20)+`"`))}, {"list 5", open()}},
			[]string{"list a", "failed: larger than 10 MiB"}},
		{"an error as an event", []step{
			begin,
			{"watch 5", open(event("ERROR", `{"kind":"Status","status":"Failure","message":"etcd is slow","reason":"InternalError","code":500}`))},
			{"watch 5", open(event("ADDED", object("b", 6)))},
		}, []string{"list a", "failed: watch /pods: etcd is slow", "ADDED b"}},
		{"a watch that ends at once", []step{begin, {"watch 5", text("")}, {"watch 5", text("")}, {"watch 5", open(event("ADDED", object("b", 6)))}},
			[]string{"list a", "ADDED b"}},
		{"a list that is refused", []step{{"list 0", refuse(403, "pods is forbidden")}, {"list 0", refuse(401, "no")}, begin, {"watch 5", open()}},
			[]string{"failed: list /pods: pods is forbidden", "failed: list /pods: the server has asked for the client to provide credentials", "list a"}},
		{"a version of the future", []step{
			begin, {"watch 5", open("garbage")},
			{"list 5", refuse(504, "Too large resource version")}, {"list ", text(list(3))}, {"watch 3", open()},
		}, []string{"list a", "failed: not valid", "failed: list /pods", "list"}},
		{"an object instead of a list", []step{{"list 0", text("{}")}, begin, {"watch 5", open()}}, []string{"failed: not a complete list", "list a"}},
		{"a Status instead of a list", []step{
			{"list 0", text(`{"kind":"Status","status":"Success","metadata":{"resourceVersion":"1"}}`)}, begin, {"watch 5", open()},
		}, []string{"failed: not a complete list", "list a"}},
		{"a part of a list", []step{
			{"list 0", text(`{"kind":"PodList","metadata":{"resourceVersion":"1","continue":"x"}}`)}, begin, {"watch 5", open()},
		}, []string{"failed: not a complete list", "list a"}},
		{"a list with null", []step{{"list 0", text(list(1, "null"))}, begin, {"watch 5", open()}}, []string{"failed: no resourceVersion", "list a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testWatch(t, !strings.Contains(c.name, "HTTP/1.1"), c.steps, c.want)
		})
	}
}

func testWatch(t *testing.T, http2 bool, steps []step, want []string) {
	t.Helper()
	requests := make(chan *http.Request)
	next := make(chan step)
	config := newAuthority(t).serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
		select {
		case requests <- r:
			(<-next).answer(w, r)
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithCancel(testContext(t))
	calls, ended := make(recorder, 100), make(chan bool)
	client := newClient(t, config)
	go func() {
		defer close(ended)
		kubeapi.Watch(ctx, client, "/pods", "spec.nodeName=x", calls)
	}()
	for _, s := range steps {
		r := receive(t, requests)
		if got := describe(t, r); got != s.want {
			t.Errorf("the server received %q, want %q", got, s.want)
		}
		next <- s
	}
	for _, w := range want {
		got := receive(t, calls)
		for strings.Contains(got, "ended it at once") { // it depends on the speed of this machine
			got = receive(t, calls)
		}
		if failure, ok := strings.CutPrefix(w, "failed: "); got != w && (!ok || !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, failure)) {
			t.Errorf("the handler received %q, want %q", got, w)
		}
	}
	cancel()
	receive(t, ended)
	if len(calls) > 0 {
		t.Errorf("the handler also received %q", <-calls)
	}
}

// describe returns the kind of a request and its version, and checks the rest.
func describe(t *testing.T, r *http.Request) string {
	t.Helper()
	q := r.URL.Query()
	if q.Get("fieldSelector") != "spec.nodeName=x" || r.URL.Path != "/pods" {
		t.Errorf("the request is %s", r.RequestURI)
	}
	if q.Get("watch") == "" {
		if q.Get("resourceVersion") != "" && q.Get("resourceVersionMatch") != "NotOlderThan" {
			t.Errorf("the request is %s", r.RequestURI)
		}
		return "list " + q.Get("resourceVersion")
	}
	seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
	if q.Get("allowWatchBookmarks") != "true" || err != nil || seconds < 300 || seconds > 600 {
		t.Errorf("the request is %s", r.RequestURI)
	}
	return "watch " + q.Get("resourceVersion")
}

// TestWatchBacksOff: pauses grow, and the server's Retry-After is respected.
func TestWatchBacksOff(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	times := make(chan time.Time, 10)
	config := newAuthority(t).serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "3")
		}
		times <- time.Now()
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	calls := make(recorder, 100)
	client := newClient(t, config)
	go kubeapi.Watch(ctx, client, "/pods", "", calls)
	var all []time.Time
	for range 3 {
		all = append(all, receive(t, times))
		if got := receive(t, calls); !strings.HasPrefix(got, "failed: ") {
			t.Errorf("the handler received %q", got)
		}
	}
	pauses := []time.Duration{all[1].Sub(all[0]), all[2].Sub(all[1])}
	if pauses[0] < 3*time.Second || pauses[1] < 1600*time.Millisecond {
		t.Errorf("the pauses are %v, want at least 3 s and 1.6 s", pauses)
	}
}

// TestDeadConnectionIsFound: a connection over which nothing arrives any more, and that nobody closes, is replaced.
// It takes 45 s: the server has to miss a ping.
func TestDeadConnectionIsFound(t *testing.T) {
	t.Parallel()
	var watches atomic.Int32
	config := newAuthority(t).serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			io.WriteString(w, list(5))
			return
		}
		open(event("ADDED", object(fmt.Sprintf("p%d", watches.Add(1)), 6)))(w, r)
	})
	silent := make(chan bool)
	config.Server = forward(t, config.Server, silent)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	calls, client := make(recorder, 100), newClient(t, config)
	go kubeapi.Watch(ctx, client, "/pods", "", calls)
	for _, want := range []string{"list", "ADDED p1"} {
		if got := receive(t, calls); got != want {
			t.Errorf("the handler received %q, want %q", got, want)
		}
	}
	close(silent)
	for got := ""; got != "ADDED p2"; {
		if got = receive(t, calls); got != "ADDED p2" && !strings.HasPrefix(got, "failed: watch /pods: ") {
			t.Errorf("the handler received %q", got)
		}
	}
}

// forward starts a proxy of a server. When silent is closed, its connections forward nothing more and stay open;
// later ones work.
func forward(t *testing.T, server string, silent <-chan bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	pump := func(to, from net.Conn, old bool) {
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				to.Close()
				return
			}
			select {
			case <-silent:
				if old {
					continue
				}
			default:
			}
			to.Write(buffer[:n])
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("tcp", strings.TrimPrefix(server, "https://"))
			if err != nil {
				t.Error(err)
				return
			}
			old := true
			select {
			case <-silent:
				old = false
			default:
			}
			go pump(client, backend, old)
			go pump(backend, client, old)
		}
	}()
	return "https://" + listener.Addr().String()
}
