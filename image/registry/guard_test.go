package registry

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podrun/podrun/image/download"
)

// TestRedirectedTokenRequest has a login in the body of a request that is redirected.
func TestRedirectedTokenRequest(t *testing.T) {
	var got atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Store(true) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	ctx, cancel := newGuard([]string{server.Listener.Addr().String()}).watch(t.Context())
	defer cancel(nil)
	body := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"secret"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
		t.Fatal("the request was redirected")
	}
	if err := download.Cause(ctx, err); !strings.Contains(err.Error(), "its scheme, host or port is another") || got.Load() {
		t.Errorf("%v; the other port was asked: %t", err, got.Load())
	}
}
