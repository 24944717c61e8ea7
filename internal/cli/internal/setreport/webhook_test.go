package setreport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/store"
)

var change = store.SetChange{
	At: time.Date(2026, 11, 29, 12, 0, 0, 5, time.FixedZone("", 3600)), Result: store.SetFailed,
	Digest: "sha256:2", Revision: "main@sha1:4f2c", Version: "1.1", Reason: "pod web: the readiness probe fails", Former: "sha256:1",
}

// serve returns a webhook at a server with this handler, which repeats requests at once.
func serve(t *testing.T, keyFile string, handler http.HandlerFunc) *Webhook {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	w, err := New(store.SetReport{URL: server.URL + "/hook?token=secret", KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	w.pauses = make([]time.Duration, len(w.pauses))
	return w
}

// TestPost compares a request with what Flux's notification-controller sends to a provider of type generic-hmac.
func TestPost(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("k1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"involvedObject": map[string]any{"kind": "Set", "namespace": "default", "name": "shop", "apiVersion": "podrun.dev/v1"},
		"severity":       "error", "timestamp": "2026-11-29T11:00:00Z", "reason": "Failed",
		"message":             "1.1 is not ready: pod web: the readiness probe fails; the set is back at sha256:1",
		"metadata":            map[string]any{"revision": "main@sha1:4f2c", "version": "1.1", "digest": "sha256:2", "former": "sha256:1"},
		"reportingController": "podrun", "reportingInstance": machine,
	}
	received := 0
	w := serve(t, key, func(_ http.ResponseWriter, r *http.Request) {
		received++
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("k1"))
		mac.Write(body)
		signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
		got := map[string]any{}
		if err != nil || json.Unmarshal(body, &got) != nil || r.Method != "POST" || r.URL.RequestURI() != "/hook?token=secret" {
			t.Errorf("%s %s: %s, %v", r.Method, r.URL, body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if r.Header.Get("X-Signature") != signature || r.Header.Get("gotk-component") != "podrun" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", r.Header)
		}
	})
	if err := w.Post(t.Context(), "shop", change); err != nil || received != 1 {
		t.Errorf("%v after %d requests", err, received)
	}
}

func TestEventOfSuccess(t *testing.T) {
	for want, c := range map[string]store.SetChange{
		"info Applied: sha256:2 is ready map[digest:sha256:2]":                                          {Result: store.SetApplied, Digest: "sha256:2"},
		"info RolledBack: 1.0 is ready; it was rolled back to by hand map[digest:sha256:1 version:1.0]": {Result: store.SetRolledBack, Digest: "sha256:1", Version: "1.0"},
		"error Failed: main@sha1:1 is not ready: timeout map[digest:sha256:1 revision:main@sha1:1]":     {Result: store.SetFailed, Digest: "sha256:1", Revision: "main@sha1:1", Reason: "timeout"},
	} {
		e := newEvent("shop", c)
		if got := e.Severity + " " + e.Reason + ": " + e.Message + " " + fmt.Sprint(e.Metadata); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestAnswers: only what another try may change is tried again, and no error has the URL's secret.
func TestAnswers(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server is asked") }))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		handler func(w http.ResponseWriter, r *http.Request, nth int)
		tries   int
		failure string // the end of the error, or ""
	}{
		"accepted":         {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusAccepted) }, 1, ""},
		"at the third try": {func(w http.ResponseWriter, _ *http.Request, nth int) { w.WriteHeader([]int{503, 500, 204}[nth-1]) }, 3, ""},
		"always failing":   {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(502) }, 3, "it answers 502 Bad Gateway"},
		"refused":          {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(401) }, 1, "it answers 401 Unauthorized"},
		"no answer at first": {func(_ http.ResponseWriter, _ *http.Request, nth int) {
			if nth == 1 {
				panic(http.ErrAbortHandler)
			}
		}, 2, ""},
		"redirected there": {func(w http.ResponseWriter, r *http.Request, nth int) {
			if nth == 1 {
				http.Redirect(w, r, "/other", http.StatusPermanentRedirect)
			} else if body, err := io.ReadAll(r.Body); err != nil || len(body) == 0 || r.URL.Path != "/other" {
				t.Errorf("%s has %q, %v", r.URL, body, err)
			}
		}, 2, ""},
		"redirected elsewhere":      {func(w http.ResponseWriter, r *http.Request, _ int) { http.Redirect(w, r, elsewhere.URL, 307) }, 1, "it redirects to " + elsewhere.URL},
		"redirected without a body": {func(w http.ResponseWriter, r *http.Request, _ int) { http.Redirect(w, r, "/other", 302) }, 1, "it redirects to http://HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			w := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
				tries++
				tc.handler(w, r, tries)
			})
			err := w.Post(t.Context(), "shop", change)
			failure := ""
			if err != nil {
				failure = strings.ReplaceAll(err.Error(), w.address.Host, "HOST")
			}
			if want := "report the change of set shop to HOST: " + tc.failure; tries != tc.tries || (failure != "") != (tc.failure != "") || failure != "" && failure != want {
				t.Errorf("%d tries, %q", tries, failure)
			}
		})
	}
}

// TestPostEnds: the end of the context ends the pause before another try.
func TestPostEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := serve(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		cancel()
	})
	w.pauses = []time.Duration{time.Hour}
	if err := w.Post(ctx, "shop", change); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for message, args := range map[string][2]string{
		`--report cannot be "ftp://example.org": use https://HOST/PATH`:    {"ftp://example.org"},
		`--report cannot be "example.org/x": use https://HOST/PATH`:        {"example.org/x"},
		`--report cannot be "https:///x": use https://HOST/PATH`:           {"https:///x"},
		"read the key of reports: open /nosuch: no such file or directory": {"https://example.org", "/nosuch"},
		"--report-key " + empty + " has no key: it is empty":               {"https://example.org", empty},
	} {
		if _, err := New(store.SetReport{URL: args[0], KeyFile: args[1]}); err == nil || err.Error() != message {
			t.Errorf("%v: %v", args, err)
		}
	}
}
