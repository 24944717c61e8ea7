package kubeapi_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// writeFiles writes files into a new directory, and returns the directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func kubeconfigText(cluster, user string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters:
- {name: other, cluster: {server: "https://other.test"}}
- {name: c, cluster: {%s}}
users:
- {name: u, user: {%s}}
contexts:
- {name: other, context: {cluster: other, user: u}}
- {name: x, context: {cluster: c, user: u}}
current-context: x
preferences: {}
`, cluster, user)
}

// TestKubeconfigFields connects with each way to authenticate.
func TestKubeconfigFields(t *testing.T) {
	a := newAuthority(t)
	received := make(chan string, 1)
	server := a.serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		text := r.Header.Get("Authorization")
		for _, c := range r.TLS.PeerCertificates {
			text += " certificate of " + c.Subject.CommonName
		}
		received <- strings.TrimSpace(text)
		io.WriteString(w, "{}")
	})
	cert, key := a.client(t, "files")
	dataCert, dataKey := a.client(t, "data")
	base := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	withCA := `server: "` + server.Server + `", certificate-authority: ca.pem`
	for _, c := range []struct{ name, cluster, user, want string }{
		{"nothing", withCA, "", ""},
		{"data", `server: "` + server.Server + `/", tls-server-name: api.test, certificate-authority: missing, certificate-authority-data: ` + base(a.pem), "token: secret", "Bearer secret"},
		{"a token file takes precedence", withCA, "token: secret, tokenFile: token", "Bearer from-file"},
		{"files", withCA, "client-certificate: cert.pem, client-key: key.pem", "certificate of files"},
		{"one file", withCA, "client-certificate: both.pem, client-key: both.pem", "certificate of files"},
		{"data takes precedence over files", withCA, "client-certificate: x, client-key: x, client-certificate-data: " + base(dataCert) + ", client-key-data: " + base(dataKey), "certificate of data"},
		{"a certificate and a token", withCA, "token: secret, client-certificate-data: " + base(dataCert) + ", client-key-data: " + base(dataKey), "Bearer secret certificate of data"},
	} {
		dir := writeFiles(t, map[string]string{
			"kubeconfig": kubeconfigText(c.cluster, c.user), "ca.pem": string(a.pem), "token": "from-file\n",
			"cert.pem": string(cert), "key.pem": string(key), "both.pem": string(cert) + string(key),
		})
		config, err := kubeapi.LoadKubeconfig(filepath.Join(dir, "kubeconfig"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := newClient(t, config).Get(testContext(t), "/", &corev1.Node{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := receive(t, received); got != c.want {
			t.Errorf("%s: the server received %q, want %q", c.name, got, c.want)
		}
	}
}

// TestKubeconfigErrors: an error names the field.
func TestKubeconfigErrors(t *testing.T) {
	const server = `server: "https://api.test"`
	cert, key := newAuthority(t).client(t, "x")
	for _, c := range []struct{ text, want string }{
		{kubeconfigText(server+", insecure-skip-tls-verify: true", ""), "insecure-skip-tls-verify is not supported"},
		{kubeconfigText(server+`, proxy-url: "http://proxy.test"`, ""), "proxy-url is not supported"},
		{kubeconfigText(server, "exec: {command: aws}"), "exec is not supported"},
		{kubeconfigText(server, "auth-provider: {name: oidc}"), "auth-provider is not supported"},
		{kubeconfigText(server, "username: u"), "username is not supported"},
		{kubeconfigText(server, "password: p"), "password is not supported"},
		{kubeconfigText(server, "as: admin"), "as is not supported"},
		{kubeconfigText(server, "as-groups: [g]"), "as is not supported"},
		{kubeconfigText(server, "tokenFile: empty"), "tokenFile: it is empty"},
		{kubeconfigText(server, "tokenFile: missing"), "tokenFile: open"},
		{kubeconfigText(server, "client-certificate: cert.pem"), "client-key is missing"},
		{kubeconfigText(server, "client-key: key.pem"), "client-certificate is missing"},
		{kubeconfigText(server, "client-certificate: missing, client-key: key.pem"), "client-certificate: open"},
		{kubeconfigText(server, "client-certificate: cert.pem, client-key: missing"), "client-key: open"},
		{kubeconfigText(server, "client-certificate: cert.pem, client-key: other.pem"), "client-certificate and client-key: tls: private key does not match"},
		{kubeconfigText(server+", certificate-authority: missing", ""), "certificate-authority: open"},
		{kubeconfigText(server+", certificate-authority: key.pem", ""), "certificate-authority: it has no certificate"},
		{kubeconfigText(server+", certificate-authority-data: '*'", ""), "illegal base64"},
		{kubeconfigText(`server: "http://api.test"`, ""), `server: "http://api.test" is not https`},
		{kubeconfigText("", ""), `server: "" is not https`},
		{strings.ReplaceAll(kubeconfigText(server, ""), "context: x", "context: z"), `current-context: "z" is not in contexts`},
		{strings.ReplaceAll(kubeconfigText(server, ""), "cluster: c,", "cluster: d,"), `the cluster "d", which is not in clusters`},
		{strings.ReplaceAll(kubeconfigText(server, ""), "user: u}", "user: v}"), `the user "v", which is not in users`},
		{"", "current-context"},
		{"a: b: c", "yaml"},
	} {
		_, otherKey := newAuthority(t).client(t, "other")
		dir := writeFiles(t, map[string]string{"kubeconfig": c.text, "empty": " \n", "cert.pem": string(cert), "key.pem": string(key), "other.pem": string(otherKey)})
		_, err := kubeapi.LoadKubeconfig(filepath.Join(dir, "kubeconfig"))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
	if _, err := kubeapi.LoadKubeconfig(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := kubeapi.ParseKubeconfig([]byte(kubeconfigText(server+", certificate-authority: /etc/passwd", ""))); err == nil || !strings.Contains(err.Error(), "certificate-authority: a file is not supported here") {
		t.Errorf("a file in a kubeconfig that is not a file: %v", err)
	}
}

// TestWrittenKubeconfig: a kubeconfig that was written is read back; a certificate that is replaced later is used.
func TestWrittenKubeconfig(t *testing.T) {
	a := newAuthority(t)
	received := make(chan string, 1)
	config := a.serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		received <- r.TLS.PeerCertificates[0].Subject.CommonName
		io.WriteString(w, "{}")
	})
	config.ServerName = "api.test"
	dir := t.TempDir()
	current, path := filepath.Join(dir, "current.pem"), filepath.Join(dir, "kubeconfig")
	issue := func(name string) {
		cert, key := a.client(t, name)
		if err := os.WriteFile(current, append(cert, key...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue("first")
	if err := config.WriteKubeconfig(path, current, current); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v: %v", info.Mode(), err)
	}
	loaded, err := kubeapi.LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Server != config.Server || string(loaded.CA) != string(config.CA) || loaded.ServerName != "api.test" {
		t.Errorf("read back: %+v", loaded)
	}
	c := newClient(t, loaded)
	for _, name := range []string{"first", "second"} {
		issue(name)
		c.CloseIdleConnections()
		if err := c.Get(testContext(t), "/", &corev1.Node{}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, received); got != name {
			t.Errorf("the server saw %s, want %s", got, name)
		}
	}
}
