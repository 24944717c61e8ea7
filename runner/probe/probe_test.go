package probe

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// local returns a Prober in the test's own network.
func local() *Prober { return New("127.0.0.1", (&net.Dialer{}).DialContext) }

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func serve(t *testing.T, handle http.HandlerFunc) int {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return portOf(t, s.Listener.Addr().String())
}

// closedPort returns a port on which no server listens.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return portOf(t, l.Addr().String())
}

// TestHTTPStatus: 200 to 399 is a success, and so is a redirect to another host, with a warning.
func TestHTTPStatus(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
		case "/here":
			http.Redirect(w, r, "/teapot", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
			w.Write([]byte("secret"))
		case "/long":
			w.Write([]byte(strings.Repeat("x", 1<<20)))
		default:
			code, _ := strconv.Atoi(r.URL.Path[1:])
			w.WriteHeader(code)
		}
	})
	for _, test := range []struct {
		path    string
		outcome lifecycle.Outcome
		message string
	}{
		{"/", lifecycle.Success, ""},
		{"/204", lifecycle.Success, ""},
		{"/304", lifecycle.Success, "Probe terminated redirects, Response body: "},
		{"/400", lifecycle.Failure, "HTTP probe failed with statuscode: 400"},
		{"/503", lifecycle.Failure, "HTTP probe failed with statuscode: 503"},
		{"/here", lifecycle.Failure, "HTTP probe failed with statuscode: 418"},
		{"/away", lifecycle.Success, "Probe terminated redirects, Response body: "},
		{"/round", lifecycle.Failure, "stopped after 10 redirects"},
		{"/long", lifecycle.Success, ""},
		{"%zz", lifecycle.Failure, "HTTP probe failed with statuscode: 400"},
	} {
		outcome, message := local().Run(t.Context(), &pod.Handler{HTTP: &pod.HTTPGet{Port: port, Path: test.path}}, time.Minute)
		if test.path == "%zz" { // sent literally; any answer is allowed
			if outcome == lifecycle.Unknown {
				t.Errorf("%s: %s %q", test.path, outcome, message)
			}
			continue
		}
		if outcome != test.outcome || !strings.Contains(message, test.message) || strings.Contains(message, "secret") {
			t.Errorf("%s: %s %q, want %s %q", test.path, outcome, message, test.outcome, test.message)
		}
	}
}

// TestHTTPRequest checks the request that a server receives.
func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	port := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	ask := func(headers ...pod.Header) *http.Request {
		t.Helper()
		h := &pod.Handler{HTTP: &pod.HTTPGet{Port: port, Path: "/a?b=c", Headers: headers}}
		if outcome, message := local().Run(t.Context(), h, time.Minute); outcome != lifecycle.Success {
			t.Fatal(message)
		}
		return got
	}
	r := ask()
	if r.Method != "GET" || r.URL.String() != "/a?b=c" || r.Proto != "HTTP/1.1" || r.Host != "127.0.0.1:"+strconv.Itoa(port) {
		t.Errorf("%s %s %s at %s", r.Method, r.URL, r.Proto, r.Host)
	}
	if h := r.Header; len(h) != 3 || h.Get("User-Agent") != "kube-probe/1.37" || h.Get("Accept") != "*/*" || h.Get("Connection") != "close" {
		t.Errorf("headers %v", h)
	}
	r = ask(pod.Header{Name: "x-custom-header", Value: "Awesome"}, pod.Header{Name: "X-Custom-Header", Value: "twice"},
		pod.Header{Name: "Host", Value: "example.com"}, pod.Header{Name: "User-Agent", Value: "me"}, pod.Header{Name: "Accept", Value: ""})
	if h := r.Header; r.Host != "example.com" || h.Get("User-Agent") != "me" || len(h.Values("X-Custom-Header")) != 2 || h.Values("Accept") != nil {
		t.Errorf("at %s, headers %v", r.Host, h)
	}
}

func TestHTTPVersions(t *testing.T) {
	var proto string
	note := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto = r.Proto })
	secure := httptest.NewUnstartedServer(note)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	clear := httptest.NewUnstartedServer(note)
	clear.Config.Protocols = new(http.Protocols)
	clear.Config.Protocols.SetUnencryptedHTTP2(true)
	clear.Start()
	defer clear.Close()
	for _, test := range []struct {
		name string
		get  pod.HTTPGet
		want string
	}{
		{"HTTPS, whose certificate nobody has signed", pod.HTTPGet{TLS: true, Port: portOf(t, secure.Listener.Addr().String())}, "HTTP/2.0"},
		{"HTTP/2 without encryption", pod.HTTPGet{HTTP2: true, Port: portOf(t, clear.Listener.Addr().String())}, "HTTP/2.0"},
	} {
		proto = ""
		if outcome, message := local().Run(t.Context(), &pod.Handler{HTTP: &test.get}, time.Minute); outcome != lifecycle.Success || proto != test.want {
			t.Errorf("%s: %s %s, by %s", test.name, outcome, message, proto)
		}
	}
	plain := serve(t, note)
	if outcome, message := local().Run(t.Context(), &pod.Handler{HTTP: &pod.HTTPGet{TLS: true, Port: plain}}, time.Minute); outcome != lifecycle.Failure {
		t.Errorf("HTTPS to a server of HTTP: %s %s", outcome, message)
	}
}

// TestHugeHeader: a server cannot fill the supervisor's memory.
func TestHugeHeader(t *testing.T) {
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 4096 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 1024))
		}
	})
	outcome, message := local().Run(t.Context(), &pod.Handler{HTTP: &pod.HTTPGet{Port: port, Path: "/"}}, time.Minute)
	if outcome != lifecycle.Failure || !strings.Contains(message, "exceeded") {
		t.Errorf("%s %q", outcome, message)
	}
}

// TestTimeouts: a server that does not answer cannot block a probe.
func TestTimeouts(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	port := portOf(t, silent.Addr().String())
	stuck := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, test := range []struct {
		name   string
		prober *Prober
		h      pod.Handler
		want   string
	}{
		{"http", local(), pod.Handler{HTTP: &pod.HTTPGet{Port: port, Path: "/"}}, "Client.Timeout exceeded"},
		{"grpc", local(), pod.Handler{GRPC: &pod.GRPC{Port: port}}, "timeout: health rpc did not complete within 1s"},
		{"tcp", New("192.0.2.1", stuck), pod.Handler{TCP: &pod.TCPSocket{Port: port}}, "timeout after 1s"},
	} {
		if outcome, message := test.prober.Run(t.Context(), &test.h, time.Second); outcome != lifecycle.Failure || !strings.Contains(message, test.want) {
			t.Errorf("%s: %s %q", test.name, outcome, message)
		}
	}
}

func TestTCP(t *testing.T) {
	port := serve(t, func(http.ResponseWriter, *http.Request) {})
	ask := func(tcp pod.TCPSocket) (lifecycle.Outcome, string) {
		return local().Run(t.Context(), &pod.Handler{TCP: &tcp}, time.Minute)
	}
	if outcome, message := ask(pod.TCPSocket{Port: port}); outcome != lifecycle.Success || message != "" {
		t.Errorf("open: %s %q", outcome, message)
	}
	if outcome, message := ask(pod.TCPSocket{Host: "localhost", Port: port}); outcome != lifecycle.Success {
		t.Errorf("by name: %s %q", outcome, message)
	}
	if outcome, message := ask(pod.TCPSocket{Port: closedPort(t)}); outcome != lifecycle.Failure || !strings.Contains(message, "connection refused") {
		t.Errorf("closed: %s %q", outcome, message)
	}
	if outcome, _ := local().Run(t.Context(), &pod.Handler{}, time.Minute); outcome != lifecycle.Unknown {
		t.Errorf("nothing to do: %s", outcome)
	}
}

// TestNotify: any answer to a hook is a success, even plain HTTP where HTTPS was meant.
func TestNotify(t *testing.T) {
	var got *http.Request
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(http.StatusInternalServerError)
	})
	if err := local().Notify(t.Context(), &pod.HTTPGet{Port: port, Path: "/stop?a=b"}, "Delete"); err != nil {
		t.Error(err)
	}
	if got.URL.String() != "/stop?a=b&reason=Delete" || got.UserAgent() != "kube-lifecycle/1.37" {
		t.Errorf("%s by %s", got.URL, got.UserAgent())
	}
	headers := []pod.Header{{Name: "Authorization", Value: "secret"}, {Name: "X", Value: "y"}}
	if err := local().Notify(t.Context(), &pod.HTTPGet{TLS: true, Port: port, Path: "/stop", Headers: headers}, ""); err != nil {
		t.Error(err)
	}
	if got.URL.String() != "/stop" || got.Header.Get("Authorization") != "" || got.Header.Get("X") != "y" {
		t.Errorf("%s with %v", got.URL, got.Header)
	}
	if err := local().Notify(t.Context(), &pod.HTTPGet{Port: closedPort(t), Path: "/"}, ""); err == nil {
		t.Error("nobody was there, and nothing is wrong")
	}
}
