package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An authority is the certificate authority of a cluster. All files are in its directory: ca.crt and
// ca.key, NAME.crt and NAME.key.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ca := &authority{dir: dir, key: newKey(t)}
	ca.certificate = &x509.Certificate{
		Subject:               commonName("kubernetes"),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	ca.certificate = ca.sign(t, "ca", ca.certificate, ca.key)
	return ca
}

// issue makes a key and a certificate as in template.
func (ca *authority) issue(t *testing.T, name string, template *x509.Certificate) {
	t.Helper()
	template.KeyUsage = x509.KeyUsageDigitalSignature
	ca.sign(t, name, template, newKey(t))
}

// issueClient makes a client certificate for a user of the API server, in groups.
func (ca *authority) issueClient(t *testing.T, name, user string, groups ...string) {
	t.Helper()
	ca.issue(t, name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign completes template, signs it for key, and writes NAME.crt and NAME.key.
func (ca *authority) sign(t *testing.T, name string, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(ca.dir, name+".crt"), encodeCertificate(certificate))
	writeKey(t, filepath.Join(ca.dir, name+".key"), key)
	return certificate
}

func (ca *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// publicKeyHash returns the hash of a certificate's public key as kubeadm join takes it in
// --discovery-token-ca-cert-hash (RFC 7469: of the SubjectPublicKeyInfo).
func publicKeyHash(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func commonName(name string) pkix.Name { return pkix.Name{CommonName: name} }

func addresses(all ...string) []net.IP {
	var ips []net.IP
	for _, a := range all {
		ips = append(ips, net.ParseIP(a))
	}
	return ips
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeKey(t *testing.T, path string, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
