package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
)

const (
	firstPause = 2 * time.Second // client-go: util/certificate/certificate_manager.go
	lastPause  = time.Minute
	recheck    = time.Minute // timers stand still while the machine is suspended
)

// Rotator keeps one certificate of a node up to date. Several goroutines may use it.
type Rotator struct {
	files   files
	report  func(error)
	now     func() time.Time
	serving bool

	mu         sync.Mutex
	request    request
	current    *tls.Certificate // nil: none has been issued
	share      float64          // current is replaced after this share of its life
	selfSigned *tls.Certificate // used by a server while current is nil
	interrupt  func()           // makes Run drop the request under way
}

// NewClientRotator returns a rotator of the client certificate that Bootstrap has written. now returns the time. An
// expired certificate is an error.
func NewClientRotator(n Node, now func() time.Time) (*Rotator, error) {
	r := newRotator(n, clientFiles, now)
	r.request = clientRequest(n.Name)
	cert, err := r.files.load()
	if err != nil {
		return nil, report.New(report.Failure, "run podrun node join", "%w", err)
	}
	r.set(cert)
	_, err = r.Certificate()
	return r, err
}

// NewServingRotator returns a rotator of the certificate with which the node serves the kubelet's API. It uses a
// self-signed certificate until one has been issued.
func NewServingRotator(n Node, now func() time.Time) (*Rotator, error) {
	r := newRotator(n, servingFiles, now)
	r.serving = true
	r.request = request{signer: certificatesv1.KubeletServingSignerName, usage: certificatesv1.UsageServerAuth, node: n.Name}
	cert, err := r.files.load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r.set(cert)
	return r, nil
}

func newRotator(n Node, name string, now func() time.Time) *Rotator {
	return &Rotator{files: files{n.Dir, name}, report: n.Report, now: now, interrupt: func() {}}
}

// SetAddresses sets the addresses for which a serving certificate is to be valid, besides the node's name. A
// certificate that lacks an address is replaced. No certificate is requested before there is an IP address (kubelet:
// pkg/kubelet/certificate/kubelet.go).
func (r *Rotator) SetAddresses(addresses []corev1.NodeAddress) {
	names, ips := []string{}, []net.IP{}
	add := func(address string) {
		if ip := net.ParseIP(address); ip != nil {
			ips = append(ips, ip)
		} else if address != "" {
			names = append(names, address)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	add(r.request.node)
	for _, a := range addresses {
		add(a.Address)
	}
	slices.Sort(names)
	slices.SortFunc(ips, func(a, b net.IP) int { return slices.Compare(a, b) })
	names, ips = slices.Compact(names), slices.CompactFunc(ips, net.IP.Equal)
	if slices.Equal(names, r.request.names) && slices.EqualFunc(ips, r.request.ips, net.IP.Equal) {
		return
	}
	r.request.names, r.request.ips, r.selfSigned = names, ips, nil
	r.interrupt()
}

// Certificate returns the current certificate, for kubeapi.Config.ClientCertificate and for a server.
func (r *Rotator) Certificate() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil && !r.now().After(r.current.Leaf.NotAfter) {
		return r.current, nil
	}
	if !r.serving {
		return nil, report.New(report.Failure, "run podrun node join", "the certificate %s expired on %s", r.files.current(), r.current.Leaf.NotAfter.Format(time.RFC3339))
	}
	if r.selfSigned == nil || r.now().After(r.selfSigned.Leaf.NotAfter) {
		cert, err := r.request.selfSign(r.now())
		if err != nil {
			return nil, err
		}
		r.selfSigned = cert
	}
	return r.selfSigned, nil
}

// Run renews the certificate when that is due, until ctx ends. It reports a failure and tries again after 2 s, after
// further failures up to a minute. For a client certificate, client must use Certificate.
func (r *Rotator) Run(ctx context.Context, client *kubeapi.Client) {
	for pause := firstPause; ctx.Err() == nil; {
		step, cancel := context.WithCancel(ctx)
		req, wait := r.next(cancel)
		if wait == 0 {
			switch err := r.renew(step, client, req); {
			case err == nil:
				wait, pause = firstPause, firstPause // a signer may issue what is due at once
			case step.Err() == nil:
				r.report(fmt.Errorf("renew the certificate %s: %w", r.files.current(), err))
				wait, pause = pause+rand.N(pause/4), min(2*pause, lastPause)
			}
		}
		_ = sleep.For(step, min(wait, recheck)) // the loop ends with ctx
		cancel()
	}
}

// next returns the request and when it is due. interrupt is called when the request changes.
func (r *Rotator) next(interrupt func()) (request, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt = interrupt
	if r.serving && len(r.request.ips) == 0 {
		return r.request, recheck
	}
	var leaf *x509.Certificate
	if r.current != nil {
		leaf = r.current.Leaf
	}
	return r.request, untilRenewal(leaf, r.request.template(), r.share, r.now())
}

// renew obtains a certificate and makes it the current one.
func (r *Rotator) renew(ctx context.Context, client *kubeapi.Client, req request) error {
	cert, err := req.obtain(ctx, client, r.files, r.report)
	if err != nil {
		return err
	}
	r.set(cert)
	if !r.serving {
		client.CloseIdleConnections()
	}
	return r.files.forgetKey()
}

func (r *Rotator) set(cert *tls.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.share = cert, 0.7+0.2*rand.Float64() // client-go: certificate_manager.go jitteryDuration
}

// untilRenewal returns how long a certificate can be used until its renewal is due: for share of its life, or not at
// all if it is nil or does not cover want (client-go: util/certificate/certificate_manager.go nextRotationDeadline).
func untilRenewal(cert *x509.Certificate, want *x509.CertificateRequest, share float64, now time.Time) time.Duration {
	if cert == nil || !covers(cert, want) {
		return 0
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	return max(0, cert.NotBefore.Add(time.Duration(share*float64(life))).Sub(now))
}
