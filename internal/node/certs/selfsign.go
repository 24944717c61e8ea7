package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

const selfSignedLife = 365 * 24 * time.Hour // client-go: util/cert GenerateSelfSignedCertKey

// selfSign returns a self-signed certificate with the subject and the names of a request. Its key is only in memory.
func (r request) selfSign(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	want := r.template()
	template := &x509.Certificate{
		Subject:     want.Subject,
		DNSNames:    want.DNSNames,
		IPAddresses: want.IPAddresses,
		NotBefore:   now.Add(-time.Hour), // clocks differ
		NotAfter:    now.Add(selfSignedLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
