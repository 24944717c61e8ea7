package probe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// answering starts a server that answers a request with text, and closes the connection.
func answering(t *testing.T, text string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 4096))
			conn.Write([]byte(text))
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return portOf(t, l.Addr().String())
}

// TestAnswers: a server may answer anything, and the error messages are the same as of net/http.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		outcome      lifecycle.Outcome
		message      string
	}{
		{"by length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", lifecycle.Success, ""},
		{"to the end", "HTTP/1.0 200 OK\r\n\r\nok", lifecycle.Success, ""},
		{"in chunks", "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", lifecycle.Failure, "statuscode: 500"},
		{"hints before", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", lifecycle.Success, ""},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\n", lifecycle.Failure, "statuscode: 101"},
		{"nothing", "", lifecycle.Failure, ": EOF"},
		{"not HTTP", "SSH-2.0-OpenSSH\r\n", lifecycle.Failure, `: net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH"`},
		{"cut off", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", lifecycle.Unknown, "unexpected EOF"},
		{"hints without end", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 8<<10), lifecycle.Failure, "net/http: server response headers exceeded 65536 bytes; aborted"},
	} {
		h := &pod.Handler{HTTP: &pod.HTTPGet{Port: answering(t, test.answer), Path: "/"}}
		outcome, message := local().Run(t.Context(), h, time.Minute)
		if outcome != test.outcome || !strings.HasSuffix(message, test.message) {
			t.Errorf("%s: %s %q, want %s %q", test.name, outcome, message, test.outcome, test.message)
		}
	}
}

// TestSlowBody: a body that does not end takes no longer than the probe's time-out.
func TestSlowBody(t *testing.T) {
	ended := make(chan struct{})
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	outcome, message := local().Run(t.Context(), &pod.Handler{HTTP: &pod.HTTPGet{Port: port}}, 100*time.Millisecond)
	if outcome != lifecycle.Unknown || message != context.DeadlineExceeded.Error() {
		t.Errorf("%s %q", outcome, message)
	}
	<-ended // its connection has ended, too
}

// TestHeaderValue: a value that would make two headers is not sent.
func TestHeaderValue(t *testing.T) {
	h := &pod.Handler{HTTP: &pod.HTTPGet{Port: closedPort(t), Headers: []pod.Header{{Name: "X", Value: "a\r\nHost: b"}}}}
	if outcome, message := local().Run(t.Context(), h, time.Minute); outcome != lifecycle.Failure || !strings.Contains(message, `invalid header field value for "X"`) {
		t.Errorf("%s %q", outcome, message)
	}
}

// TestRedirectToTLS: a redirect from plain HTTP to HTTPS is followed, and no certificate is verified.
func TestRedirectToTLS(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	secure.TLS = &tls.Config{}
	secure.StartTLS()
	defer secure.Close()
	port := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, secure.URL, http.StatusFound) })
	h := &pod.Handler{HTTP: &pod.HTTPGet{Port: port, Path: "/"}}
	if outcome, message := local().Run(t.Context(), h, time.Minute); outcome != lifecycle.Failure || message != "HTTP probe failed with statuscode: 418" {
		t.Errorf("%s %q", outcome, message)
	}
}
