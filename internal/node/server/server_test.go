package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ca is a certificate authority.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &ca{cert, key}
}

// issue returns a certificate for a user, which is valid until end.
func (c *ca) issue(t *testing.T, name string, end time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}}, NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// encodeChain and encodeKey return a certificate and its key in PEM.
func encodeChain(c *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

func encodeKey(t *testing.T, c *tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (c *ca) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// fakePods has one pod, default/web with the UID 1 and the container main.
type fakePods struct {
	logs        func(ctx context.Context, o *corev1.PodLogOptions, out io.Writer) error
	exec        func(ctx context.Context, command []string, s Streams) (int, error)
	attach      func(ctx context.Context, s Streams) error
	portForward func(port int32, stream io.ReadWriteCloser) error
}

func (*fakePods) List() []*corev1.Pod {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}}
}

func (f *fakePods) Find(namespace, name string, uid types.UID) *corev1.Pod {
	if p := f.List()[0]; namespace == p.Namespace && name == p.Name && (uid == "" || uid == p.UID) {
		return p
	}
	return nil
}

func (*fakePods) Metrics() ([]byte, error) { return []byte("metrics\n"), nil }

func (*fakePods) AgentMetrics() ([]byte, error) { return []byte("kubelet_running_pods 1\n"), nil }

func (*fakePods) ProbeMetrics() ([]byte, error) { return []byte("prober_probe_total 1\n"), nil }

func (*fakePods) Summary() ([]byte, error) { return []byte("{}"), nil }

func (f *fakePods) Logs(ctx context.Context, _ *corev1.Pod, _ string, o *corev1.PodLogOptions, out io.Writer) error {
	return f.logs(ctx, o, out)
}

func (f *fakePods) Exec(ctx context.Context, _ *corev1.Pod, _ string, command []string, s Streams) (int, error) {
	if f.exec == nil {
		return 0, errors.New("not in this test")
	}
	return f.exec(ctx, command, s)
}

func (f *fakePods) Attach(ctx context.Context, _ *corev1.Pod, _ string, s Streams) error {
	return f.attach(ctx, s)
}

func (f *fakePods) PortForward(_ context.Context, _ *corev1.Pod, port int32, stream io.ReadWriteCloser) error {
	return f.portForward(port, stream)
}

// fakeReviewer knows the token "good", and permits what allowed says.
type fakeReviewer struct {
	mu      sync.Mutex
	asked   []string
	allowed func(authorizationv1.SubjectAccessReviewSpec) bool
	failure error
}

func (r *fakeReviewer) ReviewToken(_ context.Context, token string) (st authenticationv1.TokenReviewStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, "token "+token)
	st.Authenticated, st.User.Username = token == "good", "robot"
	return st, r.failure
}

func (r *fakeReviewer) ReviewAccess(_ context.Context, s authorizationv1.SubjectAccessReviewSpec) (st authorizationv1.SubjectAccessReviewStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := s.ResourceAttributes
	r.asked = append(r.asked, fmt.Sprintf("%s may %s %s/%s %s", s.User, a.Verb, a.Resource, a.Subresource, a.Name))
	st.Allowed = r.allowed == nil || r.allowed(s)
	return st, r.failure
}

// host is a server and its authority.
type host struct {
	*ca
	url      string
	reviewer *fakeReviewer
	pods     *fakePods
	logs     string // the log directory
}

// serve starts a server that ends with the test.
func serve(t *testing.T) *host {
	t.Helper()
	h := &host{ca: newCA(t), reviewer: &fakeReviewer{}, pods: &fakePods{}, logs: t.TempDir()}
	own := h.issue(t, "node", time.Now().Add(time.Hour))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Node: "attic", Pods: h.pods, Reviewer: h.reviewer, ClientCA: h.pem(), Certificate: func() (*tls.Certificate, error) { return own, nil }, LogDir: h.logs, Config: Config{MaxPods: 20, ClusterDomain: "cluster.local"}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h.url = "https://" + l.Addr().String()
	return h
}

// client returns a client with a certificate, which may be nil.
func (h *host) client(t *testing.T, cert *tls.Certificate) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(h.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	if cert != nil {
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &http.Client{Transport: transport}
}

// get returns the code and the text of an answer.
func (h *host) get(t *testing.T, cert *tls.Certificate, token, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, h.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := h.client(t, cert).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// TestAuthentication checks who is let in: clients with a certificate or a token of the cluster.
func TestAuthentication(t *testing.T) {
	h := serve(t)
	soon := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		cert  *tls.Certificate
		token string
		code  int
	}{
		"nothing":                    {nil, "", http.StatusUnauthorized},
		"a certificate":              {h.issue(t, "apiserver", soon), "", http.StatusOK},
		"a foreign certificate":      {newCA(t).issue(t, "apiserver", soon), "", 0},
		"an expired certificate":     {h.issue(t, "apiserver", time.Now().Add(-time.Minute)), "", 0},
		"a certificate without name": {h.issue(t, "", soon), "", http.StatusUnauthorized},
		"a token":                    {nil, "good", http.StatusOK},
		"another token":              {nil, "bad", http.StatusUnauthorized},
	} {
		if code, text := h.get(t, tc.cert, tc.token, "/healthz"); code != tc.code {
			t.Errorf("%s: code %d, want %d: %s", name, code, tc.code, text)
		}
	}
}

// TestListsAndConfig: /runningpods/ has the pods that run, and /configz the configuration.
func TestListsAndConfig(t *testing.T) {
	h := serve(t)
	h.reviewer.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return s.ResourceAttributes.Subresource == "pods" || s.ResourceAttributes.Subresource == "configz"
	}
	for path, want := range map[string]string{
		"/runningpods/": `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`, // the pod of this test is pending
		"/configz":      `{"kubeletconfig":{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","port":0,"maxPods":20,"clusterDomain":"cluster.local"}}`,
	} {
		if code, text := h.get(t, nil, "good", path); code != http.StatusOK || text != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestReaderDoesNotExecute: a client that may only read the node executes nothing by a websocket, whose method is GET.
func TestReaderDoesNotExecute(t *testing.T) {
	h := serve(t)
	h.reviewer.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool { return s.ResourceAttributes.Verb == "get" }
	h.pods.exec = func(context.Context, []string, Streams) (int, error) {
		t.Error("a command was executed")
		return 0, nil
	}
	for _, path := range []string{"/exec/default/web/main?command=id&output=1", "/attach/default/web/main?output=1", "/portForward/default/web?port=80"} {
		for _, headers := range []http.Header{{"Upgrade": {"websocket"}}, {"Upgrade": {"", "websocket"}}, {"Upgrade": {"SPDY/3.1"}}} {
			r, err := http.NewRequest(http.MethodGet, h.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = headers
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Authorization", "Bearer good")
			r.Header.Set("Sec-WebSocket-Version", "13")
			r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			r.Header.Set("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
			answer, err := h.client(t, nil).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "verb=create") {
				t.Errorf("%s with %v: %d %s %v", path, headers["Upgrade"], answer.StatusCode, text, err)
			}
		}
	}
}

// TestAuthorization checks what the API server is asked, and that its answers are used again.
func TestAuthorization(t *testing.T) {
	h := serve(t)
	h.reviewer.allowed = func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return s.ResourceAttributes.Subresource == "proxy"
	}
	for range 2 {
		if code, text := h.get(t, nil, "good", "/pods"); code != http.StatusOK || !json.Valid([]byte(text)) || !strings.Contains(text, `"name":"web"`) {
			t.Errorf("/pods: %d %s", code, text)
		}
	}
	const forbidden = "Forbidden (user=robot, verb=get, resource=nodes, subresource(s)=[metrics])"
	if code, text := h.get(t, nil, "good", "/metrics/resource"); code != http.StatusForbidden || text != forbidden {
		t.Errorf("/metrics/resource: %d %s", code, text)
	}
	want := "token good; robot may get nodes/pods attic; robot may get nodes/proxy attic; robot may get nodes/metrics attic"
	if got := strings.Join(h.reviewer.asked, "; "); got != want {
		t.Errorf("the API server was asked:\n%s\nwant\n%s", got, want)
	}
	h.reviewer.failure = errors.New("it is away")
	if code, text := h.get(t, nil, "new", "/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "it is away") {
		t.Errorf("without the API server: %d %s", code, text)
	}
}

// TestLogs checks the log of a container, and what is refused.
func TestLogs(t *testing.T) {
	h := serve(t)
	cert := h.issue(t, "apiserver", time.Now().Add(time.Hour))
	h.pods.logs = func(_ context.Context, o *corev1.PodLogOptions, out io.Writer) error {
		_, err := fmt.Fprintf(out, "tail %d previous %t", *o.TailLines, o.Previous)
		return err
	}
	for path, want := range map[string]string{
		"/containerLogs/default/web/main?tailLines=3&previous=true": "200 tail 3 previous true",
		"/containerLogs/default/web/other":                          `404 container "other" not found in pod "web"`,
		"/containerLogs/default/other/main":                         `404 pod "other" does not exist`,
		"/containerLogs/default/web/main?tailLines=-1":              `400 the parameter tailLines="-1": it is less than 0`,
		"/containerLogs/..%2f..%2fetc/web/main":                     `404 pod "web" does not exist`,
		"/exec/default/web/2/main?command=id&output=1":              `404 pod "web" does not exist`,
		"/exec/default/web/main?output=1":                           "400 the request has no command",
		"/exec/default/web/main?command=id":                         "400 you must specify at least 1 of stdin, stdout, stderr",
		"/metrics":                                                  "200 kubelet_running_pods 1",
		"/metrics/resource":                                         "200 metrics",
		"/metrics/probes":                                           "200 prober_probe_total 1",
		"/stats/summary":                                            "200 {}",
	} {
		code, text := h.get(t, cert, "", path)
		if got := fmt.Sprint(code, " ", text); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestFollowedLog checks that lines arrive at once, and that a client that leaves ends the call.
func TestFollowedLog(t *testing.T) {
	h := serve(t)
	lines, left := make(chan string), make(chan struct{})
	h.pods.logs = func(ctx context.Context, _ *corev1.PodLogOptions, out io.Writer) error {
		defer close(left)
		for {
			select {
			case l := <-lines:
				io.WriteString(out, l)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	answers := make(chan *http.Response, 1)
	go func() {
		answer, err := h.client(t, h.issue(t, "apiserver", time.Now().Add(time.Hour))).Get(h.url + "/containerLogs/default/web/main?follow=true")
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	lines <- "first\n"
	answer := <-answers
	if answer == nil {
		return
	}
	for _, want := range []string{"first\n", "second\n"} {
		if want != "first\n" {
			lines <- want
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, got); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	answer.Body.Close()
	<-left
}

func TestLogOptions(t *testing.T) {
	o, err := logOptions(url.Values{"follow": {"true"}, "timestamps": {"1"}, "sinceTime": {"2026-01-02T03:04:05Z"}, "limitBytes": {"7"}, "stream": {"Stderr"}, "unknown": {"x"}})
	if err != nil || !o.Follow || !o.Timestamps || *o.LimitBytes != 7 || *o.Stream != "Stderr" || o.SinceTime.Unix() != 1767323045 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []url.Values{
		{"follow": {"maybe"}}, {"tailLines": {"x"}}, {"sinceSeconds": {"0"}}, {"limitBytes": {"0"}}, {"sinceTime": {"yesterday"}}, {"stream": {"all"}},
		{"sinceSeconds": {"1"}, "sinceTime": {"2026-01-02T03:04:05Z"}},
	} {
		if o, err := logOptions(bad); err == nil {
			t.Errorf("%v: %+v", bad, o)
		}
	}
}

// FuzzLogOptions checks that no query makes options that are out of range.
func FuzzLogOptions(f *testing.F) {
	for _, seed := range []string{"follow=true&tailLines=5", "sinceTime=2026-01-02T03:04:05.000000001Z", "limitBytes=9223372036854775808", "stream=Stdout&stream=All", "tailLines=%2b1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		o, err := logOptions(values)
		if err == nil && (o.TailLines != nil && *o.TailLines < 0 || o.LimitBytes != nil && *o.LimitBytes < 1 || o.SinceSeconds != nil && (*o.SinceSeconds < 1 || o.SinceTime != nil)) {
			t.Errorf("%q: %+v", query, o)
		}
	})
}
