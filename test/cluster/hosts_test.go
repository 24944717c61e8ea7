package cluster

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

const (
	hostsEnv = "PODRUN_CLUSTER_HOSTS" // the hosts that scripts/test-cluster made: NAME=ADDRESS…
	awayEnv  = "PODRUN_CLUSTER_AWAY"  // how long TestHosts stops the API server; 20s without it
)

// A host has a user and a network of its own, which have its name.
type host struct{ name, address string }

// hosts returns the hosts. The first one is the host of the control plane, the others can join it.
func hosts() (all []*host) {
	for _, field := range strings.Fields(os.Getenv(hostsEnv)) {
		name, address, _ := strings.Cut(field, "=")
		all = append(all, &host{name, address})
	}
	return all
}

// own gives a file or a directory, with everything below it, to the host's user.
func (h *host) own(t *testing.T, path string) {
	t.Helper()
	if h != nil {
		run(t, exec.Command("chown", "-R", h.name+":", path))
	}
}

// command returns a call of a program on the host, by its user.
func (h *host) command(program string, args ...string) *exec.Cmd {
	if h == nil {
		return exec.Command(program, args...)
	}
	enter := []string{"--net=/run/netns/" + h.name, "unshare", "--uts", "sh", "-c",
		`hostname "$0" && exec setpriv --reuid="$0" --regid="$0" --init-groups "$@"`, h.name, program}
	return exec.Command("nsenter", append(enter, args...)...)
}

// setLink connects the host with the others, or disconnects it.
func (h *host) setLink(t *testing.T, state string) {
	t.Helper()
	run(t, exec.Command("ip", "-n", h.name, "link", "set", "eth0", state))
}

// needHosts skips t where there are no hosts. It returns a user of the control plane's, and the hosts that can join it.
func needHosts(t *testing.T) (d *developer, others []*host) {
	t.Helper()
	testenv.NeedVM(t, func() error {
		if os.Getenv(hostsEnv) == "" {
			return errors.New("several hosts: scripts/test-cluster makes them for root")
		}
		return nil
	})
	d = newDeveloper(t)
	t.Cleanup(func() { // after the pods have ended
		d.waitFor(t, "the WireGuard processes end with the pods", func() bool { return len(processes(t, "podrun-wireguard")) == 0 })
	})
	return d, hosts()[1:]
}

// TestHosts: the nodes of a cluster are three hosts with a user each.
func TestHosts(t *testing.T) {
	d, others := needHosts(t)
	c := d.startControlPlane(t)
	nodes := map[string]*node{}
	for _, h := range others {
		nodes[h.name] = c.startNodeOn(t, h, h.name, "--pod-network", "wireguard")
	}
	c.kubectl(t, "wait", "--for=condition=NetworkUnavailable=False", "nodes", "--all", "--timeout="+timeout.String())
	c.apply(t, hostsDeployment)
	c.kubectl(t, "rollout", "status", "deployment/spread", "--timeout="+timeout.String())
	t.Run("spread", func(t *testing.T) {
		want := []string{"podrun-host1", "podrun-host1", "podrun-host2", "podrun-host2", "podrun-host3", "podrun-host3"}
		if got := c.nodesOf(t, "app=spread"); !slices.Equal(got, want) {
			t.Errorf("the pods are on %v, want %v", got, want)
		}
		if got := c.kubectl(t, "logs", "-l", "app=spread"); got != strings.Repeat("started\n", 6) {
			t.Errorf("logs of the pods: %q", got)
		}
	})
	t.Run("network", func(t *testing.T) {
		var reached string
		defer func() {
			if t.Failed() {
				t.Logf("it reached %s", reached)
			}
		}()
		c.waitFor(t, "a pod reaches the pods of all hosts by their Service", func() bool {
			reached = c.kubectl(t, "exec", "deployment/spread", "--", "sh", "-c", "for i in $(seq 30); do timeout 2 wget -q -O- http://spread/name; done | sort -u")
			return strings.Count(reached, "\n") == 6
		})
	})
	t.Run("API server away", func(t *testing.T) { testAway(t, c, nodes) })
	t.Run("dead node", func(t *testing.T) { testDeadNode(t, c, nodes["podrun-host3"]) })
	c.kubectl(t, "delete", "deployment/spread", "--cascade=foreground", "--timeout="+timeout.String())
}

const hostsDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: spread}
spec:
  replicas: 6
  selector: {matchLabels: {app: spread}}
  template:
    metadata: {labels: {app: spread}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, labelSelector: {matchLabels: {app: spread}}}
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
      containers:
      - name: main
        image: "` + image + `"
        command: [sh, -c, "mkdir /www; hostname > /www/name; echo started; exec httpd -f -p 8080 -h /www"]
        readinessProbe: {tcpSocket: {port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: spread}
spec:
  selector: {app: spread}
  ports: [{port: 80, targetPort: 8080}]
`

// testAway: while the API server does not answer, and afterwards, the containers keep running.
func testAway(t *testing.T, c *controlPlane, nodes map[string]*node) {
	away := 20 * time.Second
	if text := os.Getenv(awayEnv); text != "" {
		var err error
		if away, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	before := c.containerIDs(t)
	resume := stopAPIServer(t)
	for end := time.Now().Add(away); time.Now().Before(end); time.Sleep(time.Second) {
		for name, n := range nodes {
			if got := n.podrun(t, "get", "pods", "-o", "jsonpath={.items[*].status.phase}{.items[*].status.containerStatuses[*].restartCount}"); got != "Running Running0 0" {
				t.Fatalf("host %s: %s", name, got)
			}
		}
	}
	resume()
	c.kubectl(t, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout="+timeout.String())
	c.kubectl(t, "rollout", "status", "deployment/spread", "--timeout="+timeout.String())
	for container, id := range c.containerIDs(t) {
		if before[container] != id {
			t.Errorf("container %s was %q and is %s", container, before[container], id)
		}
	}
}

// testDeadNode: the pods of a host that is cut off run on the others. When it is back, it stops its own.
func testDeadNode(t *testing.T, c *controlPlane, n *node) {
	n.host.setLink(t, "down")
	c.waitFor(t, "the pods run on two nodes", func() bool {
		pods := c.kubectl(t, "get", "pods", "-l", "app=spread", "-o", `jsonpath={range .items[*]}{.spec.nodeName}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		return strings.Count(pods, "=True") == 6 && !strings.Contains(pods, n.name+"=True")
	})
	if got := n.podrun(t, "get", "pods", "-o", "name"); strings.Count(got, "\n") != 2 {
		t.Errorf("the host that is cut off has the pods %q", got)
	}
	n.host.setLink(t, "up")
	c.kubectl(t, "wait", "--for=condition=Ready", "node/"+n.name, "--timeout="+timeout.String())
	c.waitFor(t, "the host has removed its pods", func() bool { return n.podrun(t, "get", "pods", "-o", "name") == "" })
	c.waitFor(t, "the API server has six pods", func() bool { return len(c.nodesOf(t, "app=spread")) == 6 })
}
