package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

const (
	testToken       = "abcdef.0123456789abcdef"
	clusterInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	csrPath         = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "test-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.cert = template
	a.pem = a.sign(t, template, &key.PublicKey)
	a.cert = parse(t, a.pem)
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, key any) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// server plays the part of an API server that signs certificates, and serves cluster-info.
type server struct {
	*authority
	t        *testing.T
	url      string
	endpoint string

	mu      sync.Mutex
	changed *sync.Cond
	version int
	csrs    []*certificatesv1.CertificateSigningRequest
	seen    []string    // who sent requests
	serials []string    // of client certificates
	watches chan string // names of requests that have been sent to a watch
	cut     func()      // closes all connections
	life    [2]time.Duration
	created chan string // names of new requests
	info    func() (int, *corev1.ConfigMap)
	refuse  bool // every token and certificate
	forget  func(template *x509.Certificate)
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{authority: newAuthority(t), t: t, created: make(chan string, 10), watches: make(chan string, 100), life: [2]time.Duration{-time.Hour, time.Hour}}
	s.changed = sync.NewCond(&s.mu)
	s.url = s.serve(t, s.authority)
	s.endpoint = strings.TrimPrefix(s.url, "https://")
	return s
}

// serve starts an HTTPS server whose certificate is by an authority.
func (s *server) serve(t *testing.T, a *authority) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, a.sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, &key.PublicKey))
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	h := httptest.NewUnstartedServer(s)
	h.EnableHTTP2 = true
	h.Config.ErrorLog = log.New(t.Output(), "", 0)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	h.StartTLS()
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	s.cut = h.CloseClientConnections
	return h.URL
}

func (s *server) bootstrapConfig() *kubeapi.Config {
	return &kubeapi.Config{Server: s.url, CA: s.pem, Token: testToken}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == clusterInfoPath {
		if r.Header.Get("Authorization") != "" {
			s.t.Error("the token was sent to a server that is not trusted")
		}
		code, info := s.info()
		answer(w, code, info)
		return
	}
	who := ""
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.String()
		s.serials = append(s.serials, r.TLS.PeerCertificates[0].SerialNumber.String())
	} else if r.Header.Get("Authorization") == "Bearer "+testToken {
		who = "token"
	}
	if who == "" || s.refuse {
		answer(w, 401, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Failure", Reason: "Unauthorized", Message: "Unauthorized"})
		return
	}
	if s.seen = append(s.seen, who); r.Method == http.MethodPost {
		s.create(w, r)
		return
	}
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, name)
		return
	}
	list := certificatesv1.CertificateSigningRequestList{TypeMeta: metav1.TypeMeta{Kind: "CertificateSigningRequestList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version + 1)}}
	for _, csr := range s.csrs {
		if csr.Name == name {
			list.Items = append(list.Items, *csr)
		}
	}
	answer(w, 200, list)
}

func answer(w http.ResponseWriter, code int, object any) {
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(object)
}

func (s *server) create(w http.ResponseWriter, r *http.Request) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := json.NewDecoder(r.Body).Decode(csr); err != nil {
		s.t.Error(err)
	}
	if slices.ContainsFunc(s.csrs, func(c *certificatesv1.CertificateSigningRequest) bool { return c.Name == csr.Name }) {
		answer(w, 409, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Failure", Reason: "AlreadyExists"})
		return
	}
	s.csrs = append(s.csrs, csr)
	s.touch(csr)
	answer(w, 201, csr)
	s.created <- csr.Name
}

func (s *server) touch(csr *certificatesv1.CertificateSigningRequest) {
	s.version++
	csr.ResourceVersion = strconv.Itoa(s.version)
	s.changed.Broadcast()
}

// watch sends the request whenever it changes, and a deletion at last.
func (s *server) watch(w http.ResponseWriter, r *http.Request, name string) {
	stop := context.AfterFunc(r.Context(), func() { s.mu.Lock(); s.changed.Broadcast(); s.mu.Unlock() })
	defer stop()
	sent := ""
	for r.Context().Err() == nil {
		i := slices.IndexFunc(s.csrs, func(c *certificatesv1.CertificateSigningRequest) bool { return c.Name == name })
		if i >= 0 && s.csrs[i].ResourceVersion != sent {
			sent = s.csrs[i].ResourceVersion
			json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": s.csrs[i]})
			s.watches <- name
		} else if i < 0 && sent != "" {
			fmt.Fprintf(w, `{"type":"DELETED","object":{"metadata":{"name":%q,"resourceVersion":"%d"}}}`, name, s.version)
			return
		}
		w.(http.Flusher).Flush()
		s.changed.Wait()
	}
}

// decide changes a request.
func (s *server) decide(name string, change func(*certificatesv1.CertificateSigningRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, csr := range s.csrs {
		if csr.Name == name {
			change(csr)
			s.touch(csr)
		}
	}
}

func (s *server) condition(name string, kind certificatesv1.RequestConditionType) {
	s.decide(name, func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Reason: "Test", Message: "by the test"})
	})
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.csrs = slices.DeleteFunc(s.csrs, func(c *certificatesv1.CertificateSigningRequest) bool { return c.Name == name })
	s.changed.Broadcast()
}

// approve approves a request, and issues the certificate.
func (s *server) approve(name string) {
	s.condition(name, certificatesv1.CertificateApproved)
	s.decide(name, func(csr *certificatesv1.CertificateSigningRequest) {
		block, _ := pem.Decode(csr.Spec.Request)
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || request.CheckSignature() != nil {
			s.t.Errorf("the request is not valid: %v", err)
		}
		usage := x509.ExtKeyUsageClientAuth
		if slices.Contains(csr.Spec.Usages, certificatesv1.UsageServerAuth) {
			usage = x509.ExtKeyUsageServerAuth
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(s.version)), Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
			NotBefore: time.Now().Add(s.life[0]), NotAfter: time.Now().Add(s.life[1]), ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}
		key := request.PublicKey
		if s.forget != nil {
			s.forget(template)
		}
		csr.Status.Certificate = s.sign(s.t, template, key)
	})
}

func (s *server) request(name string) certificatesv1.CertificateSigningRequestSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, csr := range s.csrs {
		if csr.Name == name {
			return csr.Spec
		}
	}
	s.t.Errorf("there is no request %s", name)
	return certificatesv1.CertificateSigningRequestSpec{}
}

// waitForWatch waits until a request has been sent to a watch. Watches of earlier requests may still be there.
func (s *server) waitForWatch(t *testing.T, name string) {
	t.Helper()
	for receive(t, s.watches) != name {
	}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing came in 2 minutes")
		panic("unreachable")
	}
}
