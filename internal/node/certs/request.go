package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// csrPath is the path of CertificateSigningRequests.
const csrPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// pendingAfter is how long a request may be pending before that is reported. An automatic approval takes less.
const pendingAfter = 5 * time.Second

// request is a certificate that a node asks for.
type request struct {
	signer string
	usage  certificatesv1.KeyUsage
	node   string
	names  []string // subject alternative names, sorted
	ips    []net.IP
}

// clientRequest is for the certificate by which a node authenticates to the API server.
func clientRequest(node string) request {
	return request{signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth, node: node}
}

// template returns the subject and the names of the certificate.
func (r request) template() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + r.node, Organization: []string{"system:nodes"}},
		DNSNames:    r.names,
		IPAddresses: r.ips,
	}
}

// object returns the CertificateSigningRequest. Its name follows from the key and the request, so that a request that
// was sent before is found (kubelet: pkg/kubelet/certificate/bootstrap/bootstrap.go digestedName).
func (r request) object(key *ecdsa.PrivateKey) (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, r.template(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate request: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %q %q %q %q", public, r.signer, r.node, r.names, r.ips))
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Name = "node-csr-" + hex.EncodeToString(sum[:])
	csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: r.signer,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, r.usage},
	}
	return csr, nil
}

// obtain requests a certificate, and waits until it is issued, until the request is denied or removed, or until ctx
// ends. It makes an issued certificate the current one of f. After an error that may pass, the next call continues
// with the same request.
func (r request) obtain(ctx context.Context, client *kubeapi.Client, f files, pending func(error)) (*tls.Certificate, error) {
	key, err := f.requestKey()
	if err != nil {
		return nil, err
	}
	csr, err := r.object(key)
	if err != nil {
		return nil, err
	}
	if err := client.Create(ctx, csrPath, csr, nil); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, explain(fmt.Errorf("request a certificate: %w", err))
	}
	w := await(ctx, client, csr.Name, pending)
	if w.err != nil {
		if w.refused { // the same request would be refused again
			w.err = errors.Join(w.err, f.forgetKey())
		}
		return nil, w.err
	}
	data, err := encodePair(w.cert, key)
	if err != nil {
		return nil, err
	}
	pair, err := r.verify(data)
	if err != nil {
		return nil, errors.Join(err, f.forgetKey())
	}
	return pair, f.save(data)
}

// verify checks that an issued certificate and its key are what was requested.
func (r request) verify(data []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("read the issued certificate: %w", err)
	}
	if leaf := pair.Leaf; !covers(leaf, r.template()) {
		return nil, fmt.Errorf("read the issued certificate: it is for %s, %q and %v, not for %s, %q and %v", leaf.Subject.CommonName, leaf.DNSNames, leaf.IPAddresses,
			r.template().Subject.CommonName, r.names, r.ips)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("read the issued certificate: it expired on %s", pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return &pair, nil
}

// covers reports whether a certificate is for the wanted subject and for all wanted names. It may have more names
// (client-go: util/certificate/certificate_manager.go certSatisfiesTemplateLocked).
func covers(cert *x509.Certificate, want *x509.CertificateRequest) bool {
	lacksName := func(name string) bool { return !slices.Contains(cert.DNSNames, name) }
	lacksIP := func(ip net.IP) bool { return !slices.ContainsFunc(cert.IPAddresses, ip.Equal) }
	return cert.Subject.CommonName == want.Subject.CommonName && !slices.ContainsFunc(want.DNSNames, lacksName) && !slices.ContainsFunc(want.IPAddresses, lacksIP)
}

// await waits until a request is decided.
func await(ctx context.Context, client *kubeapi.Client, name string, pending func(error)) *waiter {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiter{name: name, pending: pending, finished: cancel}
	kubeapi.Watch(ctx, client, csrPath, "metadata.name="+name, w)
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.err == nil && w.cert == nil {
		w.err = fmt.Errorf("wait for the certificate request %s: %w", name, ctx.Err())
	}
	return w
}

// waiter receives a CertificateSigningRequest until it is decided.
type waiter struct {
	name     string
	pending  func(error)
	timer    *time.Timer // calls pending
	finished func()
	cert     []byte
	err      error
	refused  bool // a new request is necessary
}

// Replace receives the request as it is. It may be absent at first, because the first list may be older.
func (w *waiter) Replace(items []*certificatesv1.CertificateSigningRequest) {
	for _, csr := range items {
		w.Event(watch.Modified, csr)
	}
	if len(items) == 0 && w.timer != nil {
		w.refuse("the certificate request %s was removed", w.name)
	}
}

// Event receives a change of the request (client-go: util/certificate/csr/csr.go WaitForCertificate).
func (w *waiter) Event(kind watch.EventType, csr *certificatesv1.CertificateSigningRequest) {
	if csr.Name != w.name {
		return
	}
	if kind == watch.Deleted {
		w.refuse("the certificate request %s was removed", w.name)
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(pendingAfter, func() {
			w.pending(report.New(report.Failure, "kubectl certificate approve "+w.name, "the certificate request %s waits for approval", w.name))
		})
	}
	approved := false
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			w.refuse("the certificate request %s is %s: %s: %s", w.name, c.Type, c.Reason, c.Message)
			return
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	if approved {
		w.timer.Stop()
	}
	if approved && len(csr.Status.Certificate) > 0 && w.err == nil {
		w.cert = csr.Status.Certificate
		w.finished()
	}
}

// Failed gives up if the server refuses, or if this node's certificate has expired. It goes on if the server does not
// answer: it may be restarting.
func (w *waiter) Failed(err error) {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || errors.As(err, new(*report.Error)) {
		w.err = explain(fmt.Errorf("wait for the certificate request %s: %w", w.name, err))
		w.finished()
	}
}

func (w *waiter) refuse(format string, args ...any) {
	if w.cert == nil {
		w.err, w.refused = fmt.Errorf(format, args...), true
	}
	w.finished()
}

// explain adds a hint to the error of a server that does not accept the token.
func explain(err error) error {
	if apierrors.IsUnauthorized(err) {
		return report.New(report.Failure, "run podrun node join with a new token; "+newTokenHint, "%w", err)
	}
	return err
}
