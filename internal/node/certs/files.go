package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/store"
)

// files are the files of one certificate, named as the kubelet's (client-go: util/certificate/certificate_store.go).
type files struct{ dir, name string }

// current is the path of the certificate and its key.
func (f files) current() string { return filepath.Join(f.dir, f.name+"-current.pem") }

// pendingKey is the path of the key whose certificate has been requested.
func (f files) pendingKey() string { return filepath.Join(f.dir, f.name+".key.tmp") }

// load returns the current certificate; the error is fs.ErrNotExist if there is none.
func (f files) load() (*tls.Certificate, error) {
	data, err := os.ReadFile(f.current())
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s: %w", f.current(), err)
	}
	return &pair, nil
}

// save makes a certificate and its key the current ones.
func (f files) save(pair []byte) error {
	if err := store.WriteFile(f.current(), pair); err != nil {
		return fmt.Errorf("write the certificate: %w", err)
	}
	return nil
}

// requestKey returns the pending key, or makes one. The key is on disk before it is used, so that a node that was
// killed continues with the same request.
func (f files) requestKey() (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(f.pendingKey())
	if err == nil {
		if block, _ := pem.Decode(data); block != nil {
			if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
				return key, nil
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of the request: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := store.WriteFile(f.pendingKey(), text); err != nil {
		return nil, fmt.Errorf("write the key of the request: %w", err)
	}
	return key, nil
}

// forgetKey removes the pending key, so that the next call of obtain makes a new request.
func (f files) forgetKey() error {
	if err := os.Remove(f.pendingKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the key of the request: %w", err)
	}
	return nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// encodePair returns the content of a file with a certificate and its key.
func encodePair(cert []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	text, err := encodeKey(key)
	return slices.Concat(bytes.TrimSpace(cert), []byte("\n"), text), err
}
