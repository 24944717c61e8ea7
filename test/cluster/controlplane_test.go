// Package cluster runs the control plane of a real Kubernetes, as an ordinary user, to test a host as
// its node: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, configured as kubeadm
// does, on the address of the host. scripts/test-cluster builds these programs, makes a network of
// the test's own, and runs the tests there.
package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/test/internal/standin"
)

const (
	programsEnv = "PODRUN_CLUSTER_PROGRAMS" // where scripts/test-cluster puts the programs
	addressEnv  = "PODRUN_CLUSTER_ADDRESS"  // IP address of the host in the test's network

	podRange     = "10.244.0.0/16"
	serviceRange = "10.96.0.0/16"
	firstService = "10.96.0.1" // of the Service kubernetes
	etcdURL      = "http://127.0.0.1:2379"

	// timeout bounds every wait: a busy machine needs much longer than an idle one.
	timeout = 2 * time.Minute
)

func TestMain(m *testing.M) {
	standin.Become()
	if os.Getenv(hostsEnv) != "" { // only root starts processes of several users
		os.Exit(m.Run())
	}
	testenv.UserMain(m)
}

// A controlPlane is the control plane of one cluster. Its ports are fixed, so only one runs at a time.
type controlPlane struct {
	dir       string // of certificates, kubeconfig files, data and logs
	programs  string
	client    string // the name of kubectl among the programs
	address   string // IP address of the host
	ca        *authority
	arguments arguments
	processes []*process
}

// arguments are more arguments of programs of the control plane.
type arguments map[string][]string

// startControlPlane starts a control plane that runs until t ends. When it returns, namespaces have
// their default ServiceAccount, and nodes can join with token. At most one args is given.
func startControlPlane(t *testing.T, args ...arguments) *controlPlane {
	t.Helper()
	needPrograms(t)
	c := &controlPlane{dir: t.TempDir(), programs: os.Getenv(programsEnv), client: defaultClient, address: os.Getenv(addressEnv)}
	if len(args) > 0 {
		c.arguments = args[0]
	}
	start := time.Now()
	c.makeCertificates(t)
	c.startEtcd(t)
	c.startAPIServer(t)
	ready := time.Since(start)
	c.startControllers(t)
	c.kubectl(t, "wait", "--for=create", "namespace/kube-public", "serviceaccount/default", "--timeout="+timeout.String())
	c.permitJoining(t)
	t.Logf("the API server was ready after %.1f s, the cluster after %.1f s", ready.Seconds(), time.Since(start).Seconds())
	return c
}

// needPrograms skips t where the programs of a control plane are missing.
func needPrograms(t *testing.T) {
	t.Helper()
	testenv.NeedVM(t, func() error {
		if os.Getenv(programsEnv) == "" {
			return errors.New("a Kubernetes control plane: scripts/test-cluster runs it")
		}
		return nil
	})
}

// server returns the URL of the API server.
func (c *controlPlane) server() string { return "https://" + c.address + ":6443" }

// file returns the path of a file of the control plane.
func (c *controlPlane) file(name string) string { return filepath.Join(c.dir, name) }

// makeCertificates makes the key of ServiceAccounts, the certificates and the kubeconfig files.
func (c *controlPlane) makeCertificates(t *testing.T) {
	t.Helper()
	c.ca = newAuthority(t, c.dir)
	writeKey(t, c.file("serviceaccount.key"), newKey(t))
	c.ca.issue(t, "apiserver", &x509.Certificate{
		Subject:     commonName("kube-apiserver"),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: addresses(c.address, firstService),
		DNSNames:    []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	})
	newAuthority(t, c.file("front-proxy")).issueClient(t, "client", "front-proxy-client")
	clients := newAuthority(t, c.file("clients")) // of twoAuthorities
	clients.issueClient(t, "apiserver", "kube-apiserver", "system:masters")
	writeFile(t, c.file("clients.crt"), slices.Concat(encodeCertificate(clients.certificate), encodeCertificate(c.ca.certificate)))
	c.ca.issueClient(t, "kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
	for file, subject := range map[string][]string{
		"admin":     {"kubernetes-admin", "system:masters"},
		"manager":   {"system:kube-controller-manager"},
		"scheduler": {"system:kube-scheduler"},
	} {
		c.ca.issueClient(t, file, subject[0], subject[1:]...)
		c.writeKubeconfig(t, file)
	}
}

// writeKubeconfig writes NAME.kubeconfig for the client certificate NAME.crt, and returns its path.
func (c *controlPlane) writeKubeconfig(t *testing.T, name string) string {
	t.Helper()
	return c.writeUserKubeconfig(t, name, fmt.Sprintf("client-certificate: %q, client-key: %q", c.file(name+".crt"), c.file(name+".key")))
}

// writeUserKubeconfig writes NAME.kubeconfig for a user with the given credentials, and returns its path.
func (c *controlPlane) writeUserKubeconfig(t *testing.T, name, credentials string) string {
	t.Helper()
	path := c.file(name + ".kubeconfig")
	writeFile(t, path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: user, user: {%s}}]
contexts: [{name: context, context: {cluster: cluster, user: user}}]
current-context: context
`, c.server(), c.file("ca.crt"), credentials))
	return path
}

// startEtcd starts etcd, which does not sync its files: they end with the test.
func (c *controlPlane) startEtcd(t *testing.T) {
	t.Helper()
	const peerURL = "http://127.0.0.1:2380"
	c.start(t, "etcd", "--data-dir", c.file("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	c.waitReady(t, http.DefaultClient, etcdURL)
}

func (c *controlPlane) startAPIServer(t *testing.T) {
	t.Helper()
	c.start(t, "kube-apiserver", "--etcd-servers", etcdURL, "--bind-address", c.address,
		"--tls-cert-file", c.file("apiserver.crt"), "--tls-private-key-file", c.file("apiserver.key"),
		"--client-ca-file", c.file("ca.crt"),
		"--requestheader-client-ca-file", c.file("front-proxy/ca.crt"), "--requestheader-allowed-names", "front-proxy-client",
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", c.file("front-proxy/client.crt"), "--proxy-client-key-file", c.file("front-proxy/client.key"),
		"--enable-aggregator-routing", // without kube-proxy no Service's address leads anywhere
		"--kubelet-client-certificate", c.file("kubelet-client.crt"), "--kubelet-client-key", c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types", "InternalIP",
		"--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file", c.file("serviceaccount.key"), "--service-account-signing-key-file", c.file("serviceaccount.key"),
		"--service-cluster-ip-range", serviceRange, "--allow-privileged",
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction", "--enable-bootstrap-token-auth")
	c.waitReady(t, c.anonymous(c.ca.pool()), c.server())
}

// startControllers starts kube-controller-manager, with the controllers that sign certificates of
// nodes and the ConfigMap cluster-info, and kube-scheduler.
func (c *controlPlane) startControllers(t *testing.T) {
	t.Helper()
	c.start(t, "kube-controller-manager", "--kubeconfig", c.file("manager.kubeconfig"), "--leader-elect=false", "--bind-address", "127.0.0.1",
		"--root-ca-file", c.file("ca.crt"), "--service-account-private-key-file", c.file("serviceaccount.key"),
		"--cluster-signing-cert-file", c.file("ca.crt"), "--cluster-signing-key-file", c.file("ca.key"),
		"--allocate-node-cidrs", "--cluster-cidr", podRange,
		"--use-service-account-credentials", "--controllers", "*,bootstrap-signer-controller,token-cleaner-controller",
		"--node-monitor-grace-period", "20s", "--node-monitor-period", "2s")
	c.start(t, "kube-scheduler", "--kubeconfig", c.file("scheduler.kubeconfig"), "--leader-elect=false", "--bind-address", "127.0.0.1")
}

// env returns the environment of the control plane and of kubectl. It has no proxy.
func (c *controlPlane) env() []string {
	return []string{"HOME=" + c.dir, "KUBECONFIG=" + c.file("admin.kubeconfig")}
}

// start starts a program of the control plane.
func (c *controlPlane) start(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.programs, program), append(args, c.arguments[program]...)...)
	cmd.Dir, cmd.Env = c.dir, c.env()
	c.processes = append(c.processes, startProcess(t, cmd, c.file(program+".log")))
}

// process returns the process of a program of the control plane.
func (c *controlPlane) process(program string) *os.Process {
	return c.processes[slices.IndexFunc(c.processes, func(p *process) bool { return p.name() == program })].cmd.Process
}

// waitReady waits until a server reports that it is ready.
func (c *controlPlane) waitReady(t *testing.T, client *http.Client, url string) {
	t.Helper()
	c.waitFor(t, url+"/readyz", func() bool {
		response, err := client.Get(url + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// waitFor calls ok until it returns true. It fails t after timeout, or if a program of the control
// plane ends.
func (c *controlPlane) waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(timeout)
	for !ok() {
		if i := slices.IndexFunc(c.processes, (*process).hasEnded); i >= 0 {
			t.Fatalf("wait for %s: %s has ended", what, c.processes[i].name())
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("wait for %s: not within %v", what, timeout)
		}
	}
}

// anonymous returns a client without credentials. It does not verify the server if pool is nil.
func (c *controlPlane) anonymous(pool *x509.CertPool) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, InsecureSkipVerify: pool == nil},
	}}
}
