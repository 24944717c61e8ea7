package certs

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"net"
	"strings"
	"testing"
	"time"
)

func TestUntilRenewal(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: "system:node:n1"}, DNSNames: []string{"a", "b"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1).To4(), net.ParseIP("fd00::1")},
		NotBefore: start, NotAfter: start.Add(100 * time.Hour),
	}
	want := func(names []string, ips ...net.IP) *x509.CertificateRequest {
		return &x509.CertificateRequest{Subject: cert.Subject, DNSNames: names, IPAddresses: ips}
	}
	for _, c := range []struct {
		name  string
		cert  *x509.Certificate
		want  *x509.CertificateRequest
		share float64
		age   time.Duration
		until time.Duration
	}{
		{"none", nil, want(nil), 0.8, 0, 0},
		{"new", cert, want(nil), 0.8, 0, 80 * time.Hour},
		{"soonest", cert, want(nil), 0.7, 0, 70 * time.Hour},
		{"latest", cert, want(nil), 0.9, 0, 90 * time.Hour},
		{"in use", cert, want(nil), 0.8, 79 * time.Hour, time.Hour},
		{"due", cert, want(nil), 0.8, 80 * time.Hour, 0},
		{"overdue", cert, want(nil), 0.8, 99 * time.Hour, 0},
		{"expired", cert, want(nil), 0.8, 101 * time.Hour, 0},
		{"not yet valid", cert, want(nil), 0.8, -time.Hour, 81 * time.Hour},
		{"all names", cert, want([]string{"b", "a"}, net.ParseIP("fd00::1"), net.IPv4(10, 0, 0, 1)), 0.8, 0, 80 * time.Hour},
		{"fewer names", cert, want([]string{"b"}), 0.8, 0, 80 * time.Hour},
		{"another name", cert, want([]string{"a", "c"}), 0.8, 0, 0},
		{"another address", cert, want(nil, net.IPv4(10, 0, 0, 2)), 0.8, 0, 0},
		{"another node", cert, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n2"}}, 0.8, 0, 0},
	} {
		if got := untilRenewal(c.cert, c.want, c.share, start.Add(c.age)).Round(time.Second); got != c.until {
			t.Errorf("%s: used for %v, want %v", c.name, got, c.until)
		}
	}
}

// TestSignature has the example of Kubernetes (cluster-bootstrap: token/jws/jws_test.go).
func TestSignature(t *testing.T) {
	const content, id, secret = "Hello from the other side. I must have called a thousand times.", "joshua", "my voice is my passcode"
	const signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
	if !signedBy(signature, content, id, secret) {
		t.Error("the signature was refused")
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"joshua"}`)) + ".."
	for name, ok := range map[string]bool{
		"another content":  signedBy(signature, content+" ", id, secret),
		"another id":       signedBy(signature, content, "david", secret),
		"another secret":   signedBy(signature, content, id, secret+"x"),
		"nothing":          signedBy("", content, id, secret),
		"not detached":     signedBy(strings.Replace(signature, "..", ".x.", 1), content, id, secret),
		"no signature":     signedBy(strings.SplitAfter(signature, "..")[0], content, id, secret),
		"no algorithm":     signedBy(none, content, id, secret),
		"not base64":       signedBy("!..!", content, id, secret),
		"another encoding": signedBy(signature+"=", content, id, secret),
	} {
		if ok {
			t.Errorf("%s: the signature was accepted", name)
		}
	}
}
