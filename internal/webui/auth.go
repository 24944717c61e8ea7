package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/httpserver"
)

// contentSecurityPolicy lets the page load only its own files, forbids every frame around it, and
// forbids turning text into markup.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// NewToken returns a random token.
func NewToken() string { return rand.Text() }

// authorize refuses requests that the page never makes. Loopback is not private: every user of the
// machine reaches it, and so does every page that a browser here has open.
//
//   - A Host name that is not loopback's belongs to a page whose name has just been changed to lead here
//     (DNS rebinding); the browser takes our page for one of that name.
//   - The token is in the part of the address that a browser does not send (the fragment), and a header
//     carries it, which a foreign page cannot set. A browser would send a cookie to every port of this
//     machine, and so to other users' programs.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.ContentLength != 0:
			http.NewResponseController(w).SetReadDeadline(time.Now()) // do not wait for more input
			h.Set("Connection", "close")
			httpError(w, http.StatusBadRequest, "a request has no body here")
		case !httpserver.IsLoopback(httpserver.HostOf(r)):
			httpError(w, http.StatusMisdirectedRequest, "this page is served at 127.0.0.1, [::1] and localhost only")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			httpError(w, http.StatusMethodNotAllowed, "this page is read-only: use GET or HEAD")
		case strings.HasPrefix(r.URL.Path, "/api/") && !s.hasToken(r):
			httpError(w, http.StatusUnauthorized, "the token is missing or expired: open the address that podrun ui has printed")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hasToken reports whether a request carries the token.
func (s *Server) hasToken(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}

// httpError answers with an error.
func httpError(w http.ResponseWriter, code int, reason string) {
	text, err := json.Marshal(map[string]string{"error": reason})
	if err != nil {
		panic(err) // a string cannot fail
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(text, '\n'))
}
