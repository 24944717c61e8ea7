// Package cluster tests podrun with a real Kubernetes, as an ordinary user: the clusters of podrun cluster, and hosts that podrun
// node joins to such a cluster. scripts/test-cluster builds the programs of the control plane, makes a network of the test's own,
// and runs the tests there.
package cluster

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/test/internal/howto"
	"github.com/podrun/podrun/test/internal/standin"
)

const (
	programsEnv = "PODRUN_CLUSTER_PROGRAMS" // where scripts/test-cluster puts the programs
	addressEnv  = "PODRUN_CLUSTER_ADDRESS"  // IP address of the host in the test's network

	firstService = "10.96.0.1" // of the Service kubernetes

	// The token of ownPage.
	tokenID = "abcdef"
	token   = tokenID + ".0123456789abcdef"

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

// A controlPlane is a cluster without nodes of its own. Its address and its port are fixed, so only one runs at a time.
type controlPlane struct {
	*developer
	address string // IP address of the host
	hash    string // of the public key of its authority
}

// arguments are more arguments of programs of the control plane.
type arguments map[string][]string

// startControlPlane starts a control plane that runs until t ends. When it returns, nodes can join with token. At most one
// args is given.
func startControlPlane(t *testing.T, args ...arguments) *controlPlane {
	t.Helper()
	return newDeveloper(t).startControlPlane(t, args...)
}

func (d *developer) startControlPlane(t *testing.T, args ...arguments) *controlPlane {
	t.Helper()
	c := &controlPlane{developer: d, address: os.Getenv(addressEnv)}
	manifest := d.podrun(t, "cluster", "create", "--nodes", "0", "--api-address", c.address+":6443", "--print")
	for _, more := range append(args, arguments{
		"etcd":                    {"--unsafe-no-fsync"}, // its files end with the test
		"kube-controller-manager": {"--node-monitor-grace-period=20s", "--node-monitor-period=2s"},
	}) {
		manifest = more.add(t, manifest)
	}
	config := d.file("cluster.yaml")
	writeFile(t, config, []byte(manifest))
	d.host.own(t, config)
	c.acceptNodes(t, d.podrun(t, "cluster", "create", "--config", config))
	return c
}

// acceptNodes makes the token of ownPage. output is what podrun cluster create has printed.
func (c *controlPlane) acceptNodes(t *testing.T, output string) {
	t.Helper()
	if c.hash = regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(output); !strings.Contains(output, "podrun node join "+c.address+":6443 ") || c.hash == "" {
		t.Fatalf("podrun cluster create printed no command to join:\n%s", output)
	}
	blocks := readOwnPage(t)
	c.apply(t, blocks[slices.IndexFunc(blocks, func(b howto.Block) bool { return b.Where == "token.yaml" })].Text())
	c.waitForToken(t, tokenID)
}

// add adds the arguments to the programs in the manifest of a cluster.
func (a arguments) add(t *testing.T, manifest string) string {
	t.Helper()
	for program, more := range a {
		parts := regexp.MustCompile(`(?s)^(.*\n    - ` + program + `\n.*?)(\n    (?:ports|volumeMounts):.*)$`).FindStringSubmatch(manifest)
		if parts == nil {
			t.Fatalf("the manifest has no %s:\n%s", program, manifest)
		}
		manifest = parts[1] + "\n    - " + strings.Join(more, "\n    - ") + parts[2]
	}
	return manifest
}

// waitForToken waits until nodes can join with a bootstrap token.
func (c *controlPlane) waitForToken(t *testing.T, id string) {
	t.Helper()
	c.kubectl(t, "wait", "--for=jsonpath={.data.jws-kubeconfig-"+id+"}", "configmap/cluster-info", "-n", "kube-public", "--timeout="+timeout.String())
}

// server returns the URL of the API server.
func (c *controlPlane) server() string { return "https://" + c.address + ":6443" }

// authority returns the path of the certificate of the cluster's authority.
func (c *controlPlane) authority() string { return c.clusterFile("kubernetes/pki/ca.crt") }

// stopAPIServer keeps the API server from running until the returned function is called, or t ends.
func stopAPIServer(t *testing.T) (resume func()) {
	t.Helper()
	all := processes(t, "kube-apiserver")
	if len(all) != 1 {
		t.Fatalf("the processes of the API server are %v", all)
	}
	signal := func(name syscall.Signal) {
		if err := syscall.Kill(all[0], name); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	resume = sync.OnceFunc(func() { signal(syscall.SIGCONT) })
	t.Cleanup(resume)
	return resume
}

// processes returns the processes of a program.
func processes(t *testing.T, program string) (pids []int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == program[:min(len(program), 15)] {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitFor calls ok until it returns true. It fails t after timeout.
func (*developer) waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(timeout)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("wait for %s: not within %v", what, timeout)
		}
	}
}

// httpClient uses each connection for one request.
var httpClient = &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
