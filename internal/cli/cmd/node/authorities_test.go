package node

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientAuthorities: --client-ca-file replaces the authorities of the API server, and must have one.
func TestClientAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	serverCA := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, tt := range map[string]struct{ text, want, err string }{
		"none":           {"", "of the API server", ""},
		"an authority":   {serverCA, serverCA, ""},
		"no certificate": {"rubbish", "", "has no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{}
			if tt.text != "" {
				o.clientCA = filepath.Join(t.TempDir(), "ca.crt")
				if err := os.WriteFile(o.clientCA, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := o.clientAuthorities([]byte("of the API server"))
			if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := (&options{clientCA: filepath.Join(t.TempDir(), "missing")}).clientAuthorities(nil); err == nil {
		t.Error("a missing file is no error")
	}
}
