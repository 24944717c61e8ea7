package controlplane

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/store"
)

// Lives of certificates (kubeadm: CertificateValidity, CACertificateValidity).
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	renewBefore   = 90 * 24 * time.Hour
)

// WriteCredentials writes the keys, the certificates and the kubeconfigs of a cluster in its KubernetesDir, under
// kubeadm's names. Authorities and keys of ServiceAccounts stay as they are; a certificate that ends within 90
// days at the time now, or lacks a name, is made again. A program reads its certificate when it starts, so that each start
// of the cluster renews what has to be.
func (c Cluster) WriteCredentials(now time.Time) error {
	w := writer{dir: filepath.Join(c.KubernetesDir(), "pki"), now: now}
	if err := w.all(c); err != nil {
		return fmt.Errorf("make the certificates of the cluster: %w", err)
	}
	return nil
}

// writer writes certificates in a directory, as of a time.
type writer struct {
	dir string
	now time.Time
}

func (w writer) all(c Cluster) error {
	if err := w.serviceAccountKey(); err != nil {
		return err
	}
	ca, err := w.authority("ca", "kubernetes")
	if err != nil {
		return err
	}
	etcd, err := w.authority("etcd/ca", "etcd-ca")
	if err != nil {
		return err
	}
	proxy, err := w.authority("front-proxy-ca", "front-proxy-ca")
	if err != nil {
		return err
	}
	local := []string{"localhost", "127.0.0.1"}
	names := append([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", c.Pod(), firstService, c.Address(1)}, local...)
	if ip := net.ParseIP(c.APIAddress); ip != nil && !ip.IsUnspecified() && !slices.Contains(names, c.APIAddress) {
		names = append(names, c.APIAddress)
	}
	for _, l := range []leaf{
		{name: "apiserver", authority: ca, user: "kube-apiserver", names: names},
		{name: "apiserver-kubelet-client", authority: ca, user: "kube-apiserver-kubelet-client", groups: []string{"kubeadm:cluster-admins"}},
		{name: "front-proxy-client", authority: proxy, user: "front-proxy-client"},
		{name: "etcd/server", authority: etcd, user: c.Name, names: local, both: true},
		{name: "etcd/peer", authority: etcd, user: c.Name, names: local, both: true},
		{name: "apiserver-etcd-client", authority: etcd, user: "kube-apiserver-etcd-client"},
	} {
		if _, _, err := w.leaf(l); err != nil {
			return err
		}
	}
	users := []kubeconfigUser{
		{"admin", leaf{user: "kubernetes-admin", groups: []string{"system:masters"}}, c.Server()},
		{"controller-manager", leaf{user: "system:kube-controller-manager"}, local6443},
		{"scheduler", leaf{user: "system:kube-scheduler"}, local6443},
	}
	for _, n := range c.Nodes() {
		users = append(users, kubeconfigUser{n.Container(), leaf{user: "system:node:" + n.Name, groups: []string{"system:nodes"}}, "https://" + net.JoinHostPort(c.Address(1), "6443")})
	}
	for _, u := range users {
		if err := w.kubeconfig(c, ca, u); err != nil {
			return err
		}
	}
	return nil
}

// local6443 is the API server for the control plane's other programs.
const local6443 = "https://127.0.0.1:6443"

// authority is a certificate authority.
type authority struct {
	text        []byte
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// path returns the path of a file.
func (w writer) path(name string) string { return filepath.Join(w.dir, name) }

// write writes a file that only the user reads.
func (w writer) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return store.WriteFile(path, text)
}

// serviceAccountKey makes the key that signs tokens, if there is none.
func (w writer) serviceAccountKey() error {
	private, public := w.path("sa.key"), w.path("sa.pub")
	if exists(public) { // it is written last
		return nil
	}
	key, text, err := newKey()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := w.write(private, text); err != nil {
		return err
	}
	return w.write(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// authority reads an authority, or makes it. The key is written first: a kill in between leaves a key without a
// certificate, and both are made again.
func (w writer) authority(name, commonName string) (*authority, error) {
	pair, text, err := w.load(name)
	if err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, fmt.Errorf("read %s: its key is not an EC key", w.path(name+".key"))
		}
		return &authority{text: text, certificate: pair.Leaf, key: key}, nil
	}
	if exists(w.path(name + ".crt")) { // another would make everything that it has signed invalid
		return nil, fmt.Errorf("read the authority %s: %w", w.path(name+".crt"), err)
	}
	key, keyText, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		DNSNames:              []string{commonName},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{key: key}
	if a.text, a.certificate, err = w.sign(template, template, key.Public(), key, authorityLife); err != nil {
		return nil, err
	}
	if err := w.write(w.path(name+".key"), keyText); err != nil {
		return nil, err
	}
	return a, w.write(w.path(name+".crt"), a.text)
}

// load reads a certificate and its key.
func (w writer) load(name string) (pair tls.Certificate, text []byte, err error) {
	if text, err = os.ReadFile(w.path(name + ".crt")); err != nil {
		return pair, nil, err
	}
	key, err := os.ReadFile(w.path(name + ".key"))
	if err != nil {
		return pair, nil, err
	}
	if pair, err = tls.X509KeyPair(text, key); err != nil {
		return pair, nil, fmt.Errorf("read %s: %w", w.path(name+".crt"), err)
	}
	return pair, text, nil
}

// sign completes a template, and returns it signed, also as text.
func (w writer) sign(template, parent *x509.Certificate, public crypto.PublicKey, by *ecdsa.PrivateKey, life time.Duration) ([]byte, *x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = number
	template.NotBefore, template.NotAfter = w.now.Add(-time.Hour).UTC(), w.now.Add(life).UTC() // clocks differ
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), certificate, err
}

// leaf describes a certificate: a server's if it has names, or a client's, or both.
type leaf struct {
	name      string // of its files
	authority *authority
	user      string
	groups    []string
	names     []string
	both      bool
}

// template returns the certificate that is to be signed.
func (l leaf) template() *x509.Certificate {
	t := &x509.Certificate{Subject: pkix.Name{CommonName: l.user, Organization: l.groups}, KeyUsage: x509.KeyUsageDigitalSignature}
	for _, name := range l.names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	if len(l.names) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if len(l.names) == 0 || l.both {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return t
}

// leaf returns the files of a certificate and its key, which it makes if they are missing or no longer good.
func (w writer) leaf(l leaf) (certificate, key []byte, err error) {
	certFile, keyFile := w.path(l.name+".crt"), w.path(l.name+".key")
	if pair, text, err := w.load(l.name); err == nil && w.isGood(pair.Leaf, l) {
		key, err := os.ReadFile(keyFile)
		return text, key, err
	}
	certificate, key, err = w.issue(l)
	if err != nil {
		return nil, nil, err
	}
	if err := w.write(keyFile, key); err != nil {
		return nil, nil, err
	}
	return certificate, key, w.write(certFile, certificate)
}

// issue makes a key and its certificate.
func (w writer) issue(l leaf) (certificate, key []byte, err error) {
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	certificate, _, err = w.sign(l.template(), l.authority.certificate, private.Public(), l.authority.key, leafLife)
	return certificate, key, err
}

// isGood reports whether a certificate can go on to be used for what l describes.
func (w writer) isGood(c *x509.Certificate, l leaf) bool {
	if w.now.Add(renewBefore).After(c.NotAfter) || c.CheckSignatureFrom(l.authority.certificate) != nil || c.Subject.CommonName != l.user {
		return false
	}
	return !slices.ContainsFunc(l.names, func(name string) bool { return c.VerifyHostname(name) != nil })
}

// kubeconfigUser is a user of the API server with a kubeconfig.
type kubeconfigUser struct {
	name   string // of the file, without .conf
	leaf   leaf
	server string
}

// kubeconfig writes the kubeconfig of a user, unless there is a good one for the server.
func (w writer) kubeconfig(c Cluster, ca *authority, u kubeconfigUser) error {
	path := filepath.Join(c.KubernetesDir(), u.name+".conf")
	u.leaf.authority = ca
	if old, err := kubeapi.LoadKubeconfig(path); err == nil && old.Server == u.server && bytes.Equal(old.CA, ca.text) && old.ClientCertificate != nil {
		if pair, err := old.ClientCertificate(); err == nil && w.isGood(pair.Leaf, u.leaf) {
			return nil
		}
	}
	certificate, key, err := w.issue(u.leaf)
	if err != nil {
		return err
	}
	text, err := kubeapi.UserKubeconfig(c.Pod(), u.server, ca.text, certificate, key)
	if err != nil {
		return err
	}
	return w.write(path, text)
}
