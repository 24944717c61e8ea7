package registry

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRedirectedTokenRequest has a login in the body of a request that is redirected.
func TestRedirectedTokenRequest(t *testing.T) {
	var got atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Store(true) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	client := &http.Client{CheckRedirect: dropLoginOnRedirect}
	resp, err := client.PostForm(server.URL, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"secret"}})
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "redirects a login to another scheme, host or port") || got.Load() {
		t.Errorf("%v; the other port was asked: %t", err, got.Load())
	}
}
