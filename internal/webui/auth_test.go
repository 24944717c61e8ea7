package webui

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const token = "THETOKEN"

// answer returns the response to a request, which has the token unless ask removes it.
func answer(t *testing.T, method, target string, ask func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:7633"
	r.Header.Set("Authorization", "Bearer "+token)
	if ask != nil {
		ask(r)
	}
	w := httptest.NewRecorder()
	newServer(&fakeSource{}).Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestHosts(t *testing.T) {
	for host, good := range map[string]bool{
		"127.0.0.1:7633": true, "localhost:8080": true, "LocalHost:1": true, "[::1]:7633": true, "[::1]": true, "127.0.0.1": true, "localhost": true, "127.1.2.3:80": true,
		"": false, "evil.example": false, "evil.example:7633": false, "localhost.evil.example:7633": false, "127.0.0.1.evil.example": false,
		"192.168.1.5:7633": false, "0.0.0.0:7633": false, "[::]:7633": false, "[::1%lo]:7633": false, "[::1": false, "localhost:": true, "localhost:7633x": false,
		"user@localhost:7633": false, "localhost.:7633": false, "127.0.0.1:7633, evil.example": false, "[::ffff:127.0.0.1]:7633": true,
	} {
		want := http.StatusMisdirectedRequest
		if good {
			want = http.StatusOK
		}
		if got := answer(t, "GET", "/", func(r *http.Request) { r.Host = host }).StatusCode; got != want {
			t.Errorf("%q: %d instead of %d", host, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for name, ask := range map[string]func(*http.Request){
		"none":         func(r *http.Request) { r.Header.Del("Authorization") },
		"another":      func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+NewToken()) },
		"a part":       func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:4]) },
		"another word": func(r *http.Request) { r.Header.Set("Authorization", token) },
		"a cookie": func(r *http.Request) {
			r.Header.Set("Authorization", "")
			r.AddCookie(&http.Cookie{Name: "token", Value: token})
		},
		"in the address": func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "token=" + token
		},
	} {
		for _, target := range []string{"/api/state", "/api/logs?namespace=default&pod=web", "/api/", "/api/nothing"} {
			if got := answer(t, "GET", target, ask); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s: %s", name, target, got.Status)
			}
		}
		if got := answer(t, "GET", "/main.js", ask); got.StatusCode != http.StatusOK {
			t.Errorf("%s: the page itself, which is no secret: %s", name, got.Status)
		}
	}
	if a, b := NewToken(), NewToken(); a == b || len(a) < 26 {
		t.Errorf("tokens are %q and %q", a, b)
	}
}

func TestMethods(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"} {
		for _, target := range []string{"/", "/api/state"} {
			got := answer(t, method, target, nil)
			if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %s, allowed are %q", method, target, got.Status, got.Header.Get("Allow"))
			}
			for key := range got.Header {
				if strings.HasPrefix(key, "Access-Control-") {
					t.Errorf("%s %s: a foreign page is let in by %s", method, target, key)
				}
			}
		}
	}
	if got := answer(t, "HEAD", "/api/state", nil); got.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %s", got.Status)
	}
	withBody := func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }
	if got := answer(t, "GET", "/", withBody); got.StatusCode != http.StatusBadRequest {
		t.Errorf("with a body: %s", got.Status)
	}
}

// Every response, also a refusal, has the security headers.
func TestHeaders(t *testing.T) {
	for _, target := range []string{"/", "/page.css", "/nothing", "/api/nothing", "/api/state"} {
		got := answer(t, "HEAD", target, nil)
		csp := got.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", target, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "data:") {
			t.Errorf("%s: the policy is %s", target, csp)
		}
		for key, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got.Header.Get(key) != want {
				t.Errorf("%s: %s is %q", target, key, got.Header.Get(key))
			}
		}
		if got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", target)
		}
	}
}

func TestFiles(t *testing.T) {
	for target, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/main.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
	} {
		got := answer(t, "GET", target, nil)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != want {
			t.Errorf("%s: %s, %s", target, got.Status, got.Header.Get("Content-Type"))
		}
	}
	for _, target := range []string{"/nothing", "/web/main.js", "/page.go", "/.", "/%2e%2e/page.go", "/main.js/", "/main.js%00"} {
		if got := answer(t, "GET", target, nil); got.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", target, got.Status)
		}
	}
}

// The page's scripts treat data as text and load nothing from elsewhere.
func TestScriptsMakeNoMarkup(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\(|srcdoc|javascript:|\bstyle=|url\(|@import`)
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9]+\.[a-z]`)
	names, err := fs.Glob(web, "web/*")
	if err != nil || len(names) < 8 {
		t.Fatalf("found %v: %v", names, err)
	}
	for _, name := range names {
		text, err := web.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := bad.Find(text); found != nil {
			t.Errorf("%s has %s", name, found)
		}
		for _, found := range elsewhere.FindAll(text, -1) {
			if !strings.Contains(string(found), "//www.w") { // the XML namespace of SVG, which is never requested
				t.Errorf("%s names %s", name, found)
			}
		}
	}
}
