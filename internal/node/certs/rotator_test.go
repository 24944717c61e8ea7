package certs_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// bootstrapped returns a node with a client certificate that begins and ends at times relative to now.
func (s *server) bootstrapped(t *testing.T, begin, end time.Duration) (certs.Node, chan error) {
	t.Helper()
	n, reports := node(t)
	s.mu.Lock()
	s.life = [2]time.Duration{begin, end}
	s.mu.Unlock()
	result, kill := bootstrap(t, s, n)
	defer kill()
	s.approve(receive(t, s.created))
	if err := receive(t, result); err != nil {
		t.Fatal(err)
	}
	return n, reports
}

// run runs a rotator until the test ends, or until it is stopped.
func run(t *testing.T, s *server, r *certs.Rotator, config *kubeapi.Config) (client *kubeapi.Client, stop func()) {
	t.Helper()
	client, err := kubeapi.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan bool)
	go func() { defer close(ended); r.Run(ctx, client) }()
	stop = func() { cancel(); receive(t, ended); client.CloseIdleConnections() }
	t.Cleanup(cancel)
	return client, stop
}

// serial waits until the rotator has another certificate than the one with the serial number before.
func serial(t *testing.T, r *certs.Rotator, before string) *x509.Certificate {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		cert, err := r.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if cert.Leaf.SerialNumber.String() != before {
			return cert.Leaf
		}
		if time.Now().After(deadline) {
			t.Fatal("the certificate was not rotated in 2 minutes")
		}
	}
}

// TestClientCertificateIsRotated: at 95 % of its life; after the server has denied a request, too. The certificate,
// its file and new connections use the new one.
func TestClientCertificateIsRotated(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, reports := s.bootstrapped(t, -95*time.Hour, 5*time.Hour)
	current := filepath.Join(n.Dir, "kubelet-client-current.pem")
	r, err := certs.NewClientRotator(n, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	old, err := r.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	client, stop := run(t, s, r, &kubeapi.Config{Server: s.url, CA: s.pem, ClientCertificate: r.Certificate})
	defer stop()
	name := receive(t, s.created)
	s.condition(name, certificatesv1.CertificateDenied)
	if err := receive(t, reports); !strings.Contains(err.Error(), "is Denied") || !strings.Contains(err.Error(), current) {
		t.Errorf("the report is %v", err)
	}
	again := receive(t, s.created)
	if again == name {
		t.Error("the request that was denied was sent again")
	}
	s.mu.Lock()
	s.life = [2]time.Duration{-time.Hour, 99 * time.Hour}
	s.mu.Unlock()
	s.approve(again)
	leaf := serial(t, r, old.Leaf.SerialNumber.String())
	stop()
	if saved, err := tls.LoadX509KeyPair(current, current); err != nil || !saved.Leaf.Equal(leaf) {
		t.Errorf("the file does not have the new certificate: %v", err)
	}
	if err := client.Get(testContext(t), csrPath, nil); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.serials[len(s.serials)-1]; got != leaf.SerialNumber.String() {
		t.Errorf("the server saw the certificate %s, want %s", got, leaf.SerialNumber)
	}
}

// TestExpiredClientCertificate: an error names the file and what to do, at the start and later.
func TestExpiredClientCertificate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, reports := s.bootstrapped(t, -time.Hour, time.Hour)
	check := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), filepath.Join(n.Dir, "kubelet-client-current.pem")) || !strings.Contains(err.Error(), "expired on") || report.Hint(err) != "run podrun node join" {
			t.Errorf("the error is %v, with the hint %q", err, report.Hint(err))
		}
	}
	var passed atomic.Int64 // of the rotator's clock
	clock := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	r, err := certs.NewClientRotator(n, clock)
	if err != nil {
		t.Fatal(err)
	}
	passed.Store(int64(2 * time.Hour))
	_, err = certs.NewClientRotator(n, clock)
	check(err)
	_, stop := run(t, s, r, &kubeapi.Config{Server: s.url, CA: s.pem, ClientCertificate: r.Certificate})
	defer stop()
	check(receive(t, reports))
	if err := os.Remove(filepath.Join(n.Dir, "kubelet-client-current.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.NewClientRotator(n, time.Now); report.Hint(err) != "run podrun node join" {
		t.Errorf("without a file: %v", err)
	}
}

// TestServingCertificate: it is self-signed until one is issued, for all addresses, also for those that come while a
// request is pending or later.
func TestServingCertificate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, _ := node(t)
	r, err := certs.NewServingRotator(n, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	config := s.bootstrapConfig()
	_, stop := run(t, s, r, config)
	defer stop()
	addresses := func(ips ...string) []corev1.NodeAddress {
		all := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeHostName, Address: "n1.test"}}
		for _, ip := range ips {
			all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		return all
	}
	describe := func() string {
		cert, err := r.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(cert.Leaf.Issuer.CommonName, " ", cert.Leaf.Subject, " ", cert.Leaf.DNSNames, " ", cert.Leaf.IPAddresses)
	}
	r.SetAddresses(addresses("10.0.0.2", "10.0.0.1", "10.0.0.2"))
	first := receive(t, s.created)
	if got, want := describe(), "system:node:n1 "+nodeSubject+" [n1 n1.test] [10.0.0.1 10.0.0.2]"; got != want {
		t.Errorf("before the approval: %s, want %s", got, want)
	}
	r.SetAddresses(addresses("10.0.0.3"))
	second := receive(t, s.created)
	if first == second {
		t.Error("the request for other addresses is the same")
	}
	spec := s.request(second)
	if spec.SignerName != "kubernetes.io/kubelet-serving" || !slices.Equal(spec.Usages, []certificatesv1.KeyUsage{"digital signature", "server auth"}) {
		t.Errorf("the request is %+v", spec)
	}
	selfSigned, err := r.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	s.approve(second)
	issued := serial(t, r, selfSigned.Leaf.SerialNumber.String())
	if got, want := describe(), "test-ca "+nodeSubject+" [n1 n1.test] [10.0.0.3]"; got != want {
		t.Errorf("issued: %s, want %s", got, want)
	}
	r.SetAddresses(addresses("10.0.0.3", "fd00::1"))
	third := receive(t, s.created)
	if got := describe(); !strings.Contains(got, "test-ca") {
		t.Errorf("the issued certificate is used no more: %s", got)
	}
	s.approve(third)
	serial(t, r, issued.SerialNumber.String())
	stop()
	r, err = certs.NewServingRotator(n, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(), "test-ca "+nodeSubject+" [n1 n1.test] [10.0.0.3 fd00::1]"; got != want {
		t.Errorf("read again: %s, want %s", got, want)
	}
	serveAndDial(t, r, s.authority)
}

// serveAndDial makes a TLS connection to a server with the certificate.
func serveAndDial(t *testing.T, r *certs.Rotator, a *authority) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.Certificate() }})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	c, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "n1.test"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
