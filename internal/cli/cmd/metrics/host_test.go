package metrics

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// TestHosts makes the requests of a page that leads its own name to the server (DNS rebinding).
func TestHosts(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		listen, host          string
		onLoopback, elsewhere bool
	}{
		{"127.0.0.1:9117", "127.0.0.1:9117", true, true},
		{"127.0.0.1:9117", "localhost:1", true, true},
		{"127.0.0.1:9117", "[::1]:9117", true, true},
		{"192.168.1.5:9117", "192.168.1.5:9117", false, true},
		{"0.0.0.0:9117", "[fd00::5]:9117", false, true},
		{"0.0.0.0:9117", machine + ":9117", false, true},
		{"pods.lan:9117", "Pods.lan:9117", false, true},
		{"0.0.0.0:9117", "evil.example:9117", false, false},
		{"0.0.0.0:9117", machine + ".evil.example", false, false},
		{"127.0.0.1:9117", "127.0.0.1.evil.example", false, false},
		{":9117", "", false, false},
	} {
		for ip, good := range map[string]bool{"127.0.0.1": tc.onLoopback, "192.168.1.5": tc.elsewhere} {
			o := &options{listen: tc.listen}
			handler := o.checkHost(listener{&net.TCPAddr{IP: net.ParseIP(ip)}}, http.NewServeMux())
			r, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
			r.Host = tc.host
			handler.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == good {
				t.Errorf("--listen %s at %s, Host %q: %d", tc.listen, ip, tc.host, w.Code)
			}
		}
	}
}

// listener has only an address.
type listener struct{ addr net.Addr }

func (l listener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l listener) Close() error              { return nil }
func (l listener) Addr() net.Addr            { return l.addr }
