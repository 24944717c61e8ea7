package follow_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestReport: each change is reported once, and a webhook that refuses it does not fail the change.
func TestReport(t *testing.T) {
	h := clitest.NewHost(t)
	var reported []string
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			InvolvedObject struct{ Name string }
			Reason         string
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		reported = append(reported, e.InvolvedObject.Name+" "+e.Reason)
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(currency string) {
		t.Helper()
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {currency: " + currency + "}\n"
		if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func(currency string) clitest.Result {
		t.Helper()
		write(currency)
		return h.Run("follow", "--once", "--stable", "0s", "--name", "shop", "--report", server.URL, dir)
	}
	for _, word := range []string{"applied", "unchanged"} {
		if got := look("EUR"); got.Code != 0 || strings.Contains(got.Err, "report") || !strings.HasSuffix(got.Out, "set/shop "+word+"\n") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	answer = http.StatusForbidden
	if got := look("CHF"); got.Code != 0 || !strings.HasSuffix(got.Out, "set/shop applied\n") || !strings.Contains(got.Err, "report the change of set shop to "+server.Listener.Addr().String()+": it answers 403 Forbidden") {
		t.Errorf("%+v", got)
	}
	if all := strings.Join(reported, ", "); all != "shop Applied, shop Applied" {
		t.Errorf("reported: %s", all)
	}

	// Changes by hand are reported to the same webhook, until the set is followed without it.
	reported, answer = nil, http.StatusOK
	write("USD")
	for _, command := range [][]string{{"apply", "--atomic", "--stable", "0s", "--name", "shop", "-f", dir}, {"follow", "rollback", "--stable", "0s", "shop"}} {
		if got := h.Run(command...); got.Code != 0 {
			t.Errorf("%+v", got)
		}
	}
	write("JPY")
	for _, command := range [][]string{{"follow", "--once", "--stable", "0s", "--name", "shop", dir}, {"follow", "rollback", "--stable", "0s", "shop"}} {
		if got := h.Run(command...); got.Code != 0 {
			t.Errorf("%+v", got)
		}
	}
	if all := strings.Join(reported, ", "); all != "shop Applied, shop RolledBack" {
		t.Errorf("reported by hand: %s", all)
	}
	if got := h.Run("follow", "--once", "--report-key", "x", dir); got.Code != 2 || !strings.Contains(got.Err, "--report-key requires --report") {
		t.Errorf("%+v", got)
	}
	if got := h.Run("follow", "--once", "--report", "example.org", dir); got.Code != 2 || !strings.Contains(got.Err, `--report cannot be "example.org"`) {
		t.Errorf("%+v", got)
	}
}
