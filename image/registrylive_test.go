package image

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/registry"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// secured is a docker-registry with TLS by a CA of its own, for user me with password secret.
type secured struct {
	addr  string
	certs string // a directory as certs.d, with the CA for addr
}

// bcryptOfSecret is the output of htpasswd -nbB for the password.
const bcryptOfSecret = "$2b$04$NvVcj5c8h0gUizxs.MEjB.RWpNwbfisSWwLKnhHhQqzRDcKX1Fy1O"

func startSecured(t *testing.T) secured {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	passwords := filepath.Join(dir, "htpasswd")
	if err := os.WriteFile(passwords, []byte("me:"+bcryptOfSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := startRegistryWith(t, fmt.Sprintf("  tls: {certificate: %s, key: %s}\nauth:\n  htpasswd: {realm: test, path: %s}\n", cert, key, passwords))
	certs := filepath.Join(dir, "certs.d", addr)
	if err := os.MkdirAll(certs, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(certs, "ca.crt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return secured{addr, certs}
}

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", secret)
}

// TestSecuredRegistry logs in to a registry with TLS, pulls from it, and logs out.
func TestSecuredRegistry(t *testing.T) {
	testenv.NoLeaks(t)
	reg := startSecured(t)
	here := two(t, "two")
	here.Compress = gzipped
	layout := newLayout(t).add(here).path()
	skopeo(t, "copy", "--dest-cert-dir", reg.certs, "--dest-creds", "me:secret", "oci:"+layout+":two", "docker://"+reg.addr+"/team/two")
	ref := reg.addr + "/team/two"
	yes := true
	auth := filepath.Join(t.TempDir(), "containers", "auth.json")
	o := api.PullOptions{TLSVerify: &yes, AuthFile: auth}

	s := newStore(t)
	_, err := s.Pull(context.Background(), ref, o)
	wantError(t, err, "certificate")
	s.Config.DockerPerHostCertDirPath = filepath.Dir(reg.certs)
	_, err = s.Pull(context.Background(), ref, o)
	wantError(t, err, "authentication required")
	if !strings.Contains(report.Hint(err), "podrun login") {
		t.Errorf("hint %q", report.Hint(err))
	}

	o.TLSVerify = nil // Login uses no other certs.d
	if _, err := registry.LoginUser(reg.addr, o); err == nil || !strings.Contains(err.Error(), "not logged in") {
		t.Errorf("before: %v", err)
	}
	_, err = registry.Login(context.Background(), api.Account{Registry: reg.addr, User: "me", Password: "wrong"}, o)
	wantError(t, err, "refuses this user and password")
	if _, err := os.Stat(auth); err == nil {
		t.Error("a wrong password was kept")
	}
	where, err := registry.Login(context.Background(), api.Account{Registry: reg.addr, User: "me", Password: "secret"}, o)
	if err != nil || where != auth {
		t.Fatalf("%q, %v", where, err)
	}
	if st, err := os.Stat(auth); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if user, err := registry.LoginUser(reg.addr, o); err != nil || user != "me" {
		t.Errorf("logged in as %q, %v", user, err)
	}
	o.TLSVerify = &yes
	got, err := s.Pull(context.Background(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(twoMerged, merged(t, got.Layers)); diff != "" {
		t.Errorf("root file system (-want +got):\n%s", diff)
	}
	o.TLSVerify = nil
	if err := registry.Logout(reg.addr, o); err != nil {
		t.Fatal(err)
	}
	wantError(t, registry.Logout(reg.addr, o), "not logged in")
	if _, err := registry.LoginUser(reg.addr, o); err == nil {
		t.Error("still logged in")
	}
	o.TLSVerify = &yes
	_, err = newStoreWith(t, s).Pull(context.Background(), ref, o)
	wantError(t, err, "authentication required")
}

// newStoreWith returns another store with the settings of like.
func newStoreWith(t *testing.T, like *testStore) *testStore {
	s := newStore(t)
	s.Config = like.Config
	return s
}

// helper is a credential helper that stores its input in a file beside it.
const helper = `#!/bin/sh
cd "$(dirname "$0")"
case $1 in
store) cat >kept ;;
get) test -e kept && cat kept || { echo "credentials not found in native keychain"; exit 1; } ;;
erase) rm -f kept ;;
list) echo '{}' ;;
esac
`

// TestCredentialHelper stores a login with a helper that registries.conf names: no part of it is written to
// a file.
func TestCredentialHelper(t *testing.T) {
	reg := startSecured(t)
	layout := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "x"})}}).path()
	skopeo(t, "copy", "--dest-cert-dir", reg.certs, "--dest-creds", "me:secret", "oci:"+layout+":x", "docker://"+reg.addr+"/x")
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-test"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	conf := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(conf, []byte(`credential-helpers = ["test"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", home)
	var o api.PullOptions
	where, err := registry.Login(context.Background(), api.Account{Registry: reg.addr, User: "me", Password: "secret"}, o)
	if err != nil || !strings.Contains(where, "test") {
		t.Fatalf("%q, %v", where, err)
	}
	if kept, err := os.ReadFile(filepath.Join(bin, "kept")); err != nil || !bytes.Contains(kept, []byte("secret")) {
		t.Errorf("the helper was given %q, %v", kept, err)
	}
	if out, _ := exec.Command("grep", "-rl", "c2VjcmV0\\|secret", home).Output(); len(out) > 0 {
		t.Errorf("the login is in %s", out)
	}
	if _, err := newStore(t).Pull(context.Background(), reg.addr+"/x", o); err != nil {
		t.Error(err)
	}
	if user, err := registry.LoginUser(reg.addr, o); err != nil || user != "me" {
		t.Errorf("%q, %v", user, err)
	}
	if err := registry.Logout(reg.addr, o); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kept")); err == nil {
		t.Error("the helper was not told to forget it")
	}
}
