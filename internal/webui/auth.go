package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// contentSecurityPolicy lets the page load its own files and nothing else, be in nobody's frame, and never
// make markup of text.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// NewToken is one that nobody guesses.
func NewToken() string { return rand.Text() }

// authorize refuses what the page never asks for. Loopback is not private: every user of the
// machine reaches it, and so does every page that a browser here has open.
//
//   - A name that is not loopback's is a page's whose name leads here since a moment
//     ago (DNS rebinding), and which the browser takes for one of that name.
//   - The token is in the part of the address that a browser keeps to itself, and is sent in a
//     header, which a foreign page cannot do. A cookie would go to every port of this
//     machine, and so to other users' programs.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(s.Stall)) // else a client that does not read keeps its connection
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.ContentLength != 0:
			control.SetReadDeadline(time.Now()) // what would follow is not waited for
			h.Set("Connection", "close")
			httpError(w, http.StatusBadRequest, "a request has no body here")
		case !isLoopback(r.Host):
			httpError(w, http.StatusMisdirectedRequest, "this page is at 127.0.0.1, [::1] or localhost, whatever else leads here")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			httpError(w, http.StatusMethodNotAllowed, "this page only looks: GET and HEAD")
		case strings.HasPrefix(r.URL.Path, "/api/") && !s.hasToken(r):
			httpError(w, http.StatusUnauthorized, "the token is missing or of another time: open the address that podrun ui has printed")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hasToken says whether a request shows the token.
func (s *Server) hasToken(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}

// isLoopback says whether a Host header names this machine to itself. The port may be
// any: that of ssh -L is not ours.
func isLoopback(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return false
		}
		name = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		name, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return false
		}
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.IsLoopback()
}

// httpError answers with what is wrong.
func httpError(w http.ResponseWriter, code int, why string) {
	text, err := json.Marshal(map[string]string{"error": why})
	if err != nil {
		panic(err) // it is a text
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(text, '\n'))
}
