package kubeapi_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

func TestRequests(t *testing.T) {
	received := make(chan string, 2)
	config := newAuthority(t).serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- fmt.Sprintf("%s %s %s %s %s %s", r.Proto, r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body)
		io.WriteString(w, `{"kind":"Node","metadata":{"name":"answer"},"unknown":{"a":1}}`)
	})
	config.Token = "secret"
	c := newClient(t, config)
	ctx := testContext(t)
	node := &corev1.Node{}
	node.Name = "x"
	uid := types.UID("u")
	for want, send := range map[string]func(into any) error{
		"GET /api/v1/nodes/x?a=b  Bearer secret ":                       func(into any) error { return c.Get(ctx, "/api/v1/nodes/x?a=b", into) },
		`POST /api/v1/nodes application/json Bearer secret {"metadata"`: func(into any) error { return c.Create(ctx, "/api/v1/nodes", node, into) },
		`PUT /api/v1/nodes/x application/json Bearer secret {"metadata`: func(into any) error { return c.Update(ctx, "/api/v1/nodes/x", node, into) },
		"PATCH /api/v1/namespaces/a/pods/b%2Fc/status application/strategic-merge-patch+json Bearer secret {}": func(into any) error {
			return c.Patch(ctx, kubeapi.PodPath("a", "b/c", "status"), types.StrategicMergePatchType, []byte("{}"), into)
		},
		`DELETE /api/v1/nodes/x application/json Bearer secret {"preconditions":{"uid":"u"}}`: func(any) error {
			return c.Delete(ctx, "/api/v1/nodes/x", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		},
	} {
		var answer corev1.Node
		if err := send(&answer); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := receive(t, received); !strings.HasPrefix(got, "HTTP/2.0 "+want) {
			t.Errorf("the server received %q, want %q", got, want)
		}
		if !strings.HasPrefix(want, "DELETE") && answer.Name != "answer" {
			t.Errorf("%s: the answer is %+v", want, answer)
		}
	}
	for name, err := range map[string]error{
		"no result":  c.Create(ctx, "/x", node, nil),
		"no options": c.Delete(ctx, "/x", nil),
	} {
		if receive(t, received); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Get(ctx, ".evil.test/", nil); err == nil {
		t.Error("a path without a slash was accepted")
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
	}
	is := func(f func(error) bool) func(error) bool { return f }
	for _, c := range []struct {
		name, body, want string
		code             int
		is               func(error) bool
	}{
		{"not found", status(404, "NotFound", `nodes "x" not found`), `GET /: nodes "x" not found`, 404, is(apierrors.IsNotFound)},
		{"conflict", status(409, "Conflict", "modified"), "modified", 409, is(apierrors.IsConflict)},
		{"unauthorized", status(401, "Unauthorized", "Unauthorized"), "Unauthorized", 401, is(apierrors.IsUnauthorized)},
		{"forbidden by a proxy", "<html>no</html>", "<html>no</html>", 403, is(apierrors.IsForbidden)},
		{"a bad gateway", "no backend", "no backend", 502, is(apierrors.IsUnexpectedServerError)},
		{"a success that is none", `{"kind":"Status","status":"Success"}`, "the server could not find", 404, is(apierrors.IsNotFound)},
		{"HTML", "<html>", "decode the answer: invalid character", 200, func(err error) bool { return !apierrors.IsNotFound(err) }},
		{"nothing", "", "decode the answer: unexpected end", 200, func(error) bool { return true }},
		{"another type", `{"metadata":7}`, "decode the answer: json: cannot unmarshal number", 200, func(error) bool { return true }},
		{"too large", strings.Repeat(" ", 11<<20), "larger than 10 MiB", 200, func(error) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newClient(t, newAuthority(t).serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				io.WriteString(w, c.body)
			}))
			err := client.Get(testContext(t), "/", &corev1.Node{})
			if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(fmt.Sprintf("%+v", asStatus(err)), c.want) || !c.is(err) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

func asStatus(err error) metav1.Status {
	var s *apierrors.StatusError
	if errors.As(err, &s) {
		return *s.ErrStatus.DeepCopy()
	}
	return metav1.Status{}
}

func TestListsMayBeLarger(t *testing.T) {
	size := 20 << 20
	c := newClient(t, newAuthority(t).serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"kind":"NodeList"`+strings.Repeat(" ", size)+"}")
	}))
	if err := c.Get(testContext(t), "/", &corev1.NodeList{}); err != nil {
		t.Error(err)
	}
	size = 65 << 20
	if err := c.Get(testContext(t), "/", &corev1.NodeList{}); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("a list of 65 MiB: %v", err)
	}
}

func TestRedirectsAreRefused(t *testing.T) {
	a := newAuthority(t)
	var followed atomic.Bool
	other := a.serve(t, true, func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	config := a.serve(t, true, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.Server, http.StatusFound) })
	config.Token = "secret"
	err := newClient(t, config).Get(testContext(t), "/x", &corev1.Node{})
	if err == nil || !strings.Contains(err.Error(), "redirects are refused") || followed.Load() {
		t.Errorf("redirect: %v, followed: %v", err, followed.Load())
	}
}

func TestPostponedRequestsAreSentAgain(t *testing.T) {
	var requests atomic.Int32
	c := newClient(t, newAuthority(t).serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) < 3 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return
		}
		io.Copy(w, r.Body)
	}))
	node, answer := &corev1.Node{}, &corev1.Node{}
	node.Name = "x"
	if err := c.Create(testContext(t), "/", node, answer); err != nil || answer.Name != "x" || requests.Load() != 3 {
		t.Errorf("%v, %d requests, the answer is %+v", err, requests.Load(), answer)
	}
}

func TestServerCertificate(t *testing.T) {
	a := newAuthority(t)
	config := a.serve(t, true, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	get := func(change func(c *kubeapi.Config)) error {
		c := *config
		change(&c)
		return newClient(t, &c).Get(testContext(t), "/", &corev1.Node{})
	}
	if err := get(func(c *kubeapi.Config) { c.ServerName = "api.test" }); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(c *kubeapi.Config){
		"another name":      func(c *kubeapi.Config) { c.ServerName = "other.test" },
		"another authority": func(c *kubeapi.Config) { c.CA = newAuthority(t).pem },
		"the host's":        func(c *kubeapi.Config) { c.CA = nil },
	} {
		if err := get(change); !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClientCertificateIsRotated: a new certificate is used after CloseIdleConnections, though a watch keeps the
// old connection, and after the server has refused the old one.
func TestClientCertificateIsRotated(t *testing.T) {
	a := newAuthority(t)
	streaming := make(chan bool)
	config := a.serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
			close(streaming)
			<-r.Context().Done()
			return
		}
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		if name == "expired" {
			http.Error(w, "expired", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"metadata":{"name":%q}}`, name)
	})
	var current atomic.Pointer[tls.Certificate]
	rotate := func(name string) {
		pair, err := tls.X509KeyPair(a.client(t, name))
		if err != nil {
			t.Fatal(err)
		}
		current.Store(&pair)
	}
	config.ClientCertificate = func() (*tls.Certificate, error) { return current.Load(), nil }
	c := newClient(t, config)
	name := func() string {
		var node corev1.Node
		if err := c.Get(testContext(t), "/", &node); err != nil {
			return err.Error()
		}
		return node.Name
	}
	rotate("first")
	if got := name(); got != "first" {
		t.Errorf("the server saw %s", got)
	}
	go c.Get(testContext(t), "/stream", &corev1.Node{})
	receive(t, streaming)
	rotate("second")
	if got := name(); got != "first" {
		t.Errorf("a connection that is open is used no more: %s", got)
	}
	c.CloseIdleConnections()
	if got := name(); got != "second" {
		t.Errorf("after CloseIdleConnections the server saw %s", got)
	}
	rotate("expired")
	c.CloseIdleConnections()
	if err := c.Get(testContext(t), "/", &corev1.Node{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a refused certificate: %v", err)
	}
	rotate("third")
	if got := name(); got != "third" {
		t.Errorf("after 401 the server saw %s", got)
	}
}

func TestServerMustBeHTTPS(t *testing.T) {
	for _, server := range []string{"", "http://127.0.0.1:8080", "127.0.0.1:6443", "https://", "https://user:password@host", "https://host/?a=b", "https://%"} {
		if _, err := kubeapi.NewClient(&kubeapi.Config{Server: server}); err == nil || !strings.Contains(err.Error(), "server") {
			t.Errorf("%q: %v", server, err)
		}
	}
}
