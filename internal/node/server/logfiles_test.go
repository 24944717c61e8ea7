package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestNodeLogs: /logs/ has the directories and regular files of the log directory, for clients that may read the node's
// logs. A link out of the directory and a FIFO, which would block, are refused.
func TestNodeLogs(t *testing.T) {
	h := serve(t)
	outside := filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{outside: "secret", filepath.Join(h.logs, "syslog"): "started\n", filepath.Join(h.logs, "apt/history.log"): "installed\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out": outside, "up": "../secret", "inside": "apt/history.log"} {
		if err := os.Symlink(target, filepath.Join(h.logs, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(h.logs, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.reviewer.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return s.ResourceAttributes.Subresource == "log"
	}
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/logs/":                       {http.StatusOK, `<a href="syslog">syslog</a>`},
		"/logs/syslog":                 {http.StatusOK, "started"},
		"/logs/apt/history.log":        {http.StatusOK, "installed"},
		"/logs/inside":                 {http.StatusOK, "installed"},
		"/logs/missing":                {http.StatusNotFound, ""},
		"/logs/out":                    {http.StatusForbidden, ""},
		"/logs/up":                     {http.StatusForbidden, ""},
		"/logs/fifo":                   {http.StatusForbidden, ""},
		"/logs/%2e%2e/secret":          {http.StatusNotFound, ""},
		"/logs/apt%2f..%2f..%2fsecret": {http.StatusNotFound, ""},
	} {
		if code, text := h.get(t, nil, "good", path); code != want.code || !strings.Contains(text, want.text) || strings.Contains(text, "secret") && code == http.StatusOK {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	h.reviewer.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return s.ResourceAttributes.Subresource == "proxy"
	}
	if code, text := h.get(t, h.issue(t, "other", time.Now().Add(time.Hour)), "", "/logs/syslog"); code != http.StatusForbidden {
		t.Errorf("without the permission: %d %s", code, text)
	}
}
