package cluster

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// podsOnNodes are a server and a client on two nodes. The server returns the client's address, and 10 MiB.
const podsOnNodes = `
apiVersion: v1
kind: Pod
metadata: {name: server}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: cellar}
  containers:
  - name: main
    image: ` + image + `
    command: [sh, -c, 'mkdir -p /www/cgi-bin; cd /www; printf "#!/bin/sh\necho; echo \$REMOTE_ADDR\n" > cgi-bin/client; printf "#!/bin/sh\necho; head -c 10485760 /dev/zero\n" > cgi-bin/large; chmod +x cgi-bin/*; exec httpd -f -p 8080 -h /www']
    readinessProbe: {tcpSocket: {port: 8080}}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: attic}
  containers: [{name: main, image: ` + image + `, command: [sleep, "100000"]}]
`

// TestPodNetwork: pods of two nodes reach each other, whatever happens to the agents.
func TestPodNetwork(t *testing.T) {
	c := startControlPlane(t)
	t.Cleanup(func() { // after the pods have ended
		c.waitFor(t, "the WireGuard processes end with the pods", func() bool { return len(processes(t, "podrun-wireguard")) == 0 })
	})
	attic := c.startNode(t, "attic", "--pod-network", "wireguard")
	cellar := c.startNode(t, "cellar", "--pod-network", "wireguard", "--wireguard-port", "51821")
	c.kubectl(t, "wait", "--for=condition=NetworkUnavailable=False", "node/attic", "node/cellar", "--timeout="+timeout.String())
	c.apply(t, podsOnNodes)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "pod/server", "--timeout="+timeout.String())
	server, client := c.podIP(t, "server", "cellar"), c.podIP(t, "client", "attic")
	var answer string
	reaches := func() bool {
		out, err := c.kubectlCommand("exec", "client", "--", "sh", "-c", request("client", server)).CombinedOutput()
		answer = string(out)
		return err == nil && strings.Contains(answer, client) // busybox writes ::ffff:ADDRESS
	}
	defer func() {
		if t.Failed() {
			t.Logf("the last answer of %s to %s was %q", server, client, answer)
		}
	}()
	c.waitFor(t, "the client reaches the server, which sees its address", reaches)
	if got := c.kubectl(t, "exec", "client", "--", "sh", "-c", request("large", server)+" | wc -c"); len(got) < len("10485760\n") {
		t.Errorf("of 10 MiB and a header there came %s bytes", got)
	}
	if got := c.kubectl(t, "get", "node", "attic", "-o", "jsonpath={.status.conditions[?(@.type=='NetworkUnavailable')].message}"); !strings.Contains(got, "WireGuard") {
		t.Errorf("the condition of the network: %q", got)
	}

	attic.killAgent(t)
	cellar.killAgent(t)
	if out, err := attic.command("exec", "client", "--", "sh", "-c", request("client", server)).CombinedOutput(); err != nil {
		t.Errorf("without agents: %v\n%s", err, out)
	}
	before := processes(t, "podrun-wireguard")
	attic.startAgent()
	cellar.startAgent()
	c.waitFor(t, "the next agents use the same processes", func() bool { return reaches() && len(processes(t, "podrun-wireguard")) == len(before) })
	for _, pid := range before {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err) // the last agent started it
		}
	}
	c.waitFor(t, "killed processes are started again", reaches)

	c.apply(t, `{apiVersion: v1, kind: Node, metadata: {name: broken, annotations: {podrun.dev/wireguard-public-key: none, podrun.dev/wireguard-endpoint: "192.0.2.9:51820"}}}`)
	const message = "pods of node broken are not reached"
	log := func() string {
		text, err := os.ReadFile(attic.file("agent.log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	c.waitFor(t, "the agent reports the node", func() bool { return strings.Contains(log(), message) })

	cellar.killAgent(t) // it would register the node again
	c.kubectl(t, "delete", "node/cellar", "--timeout="+timeout.String())
	c.waitFor(t, "a removed node is not reached", func() bool { return !reaches() })
	if n := strings.Count(log(), message); n != 1 {
		t.Errorf("%d messages about the node with an invalid annotation", n)
	}
}

// request returns a command that requests an answer of the server.
func request(name, server string) string {
	return `printf 'GET /cgi-bin/` + name + ` HTTP/1.0\r\n\r\n' | nc -w 5 ` + server + ` 8080`
}

// podIP returns the address of a pod, which must be one of its node's network.
func (c *controlPlane) podIP(t *testing.T, pod, node string) string {
	t.Helper()
	ip := c.kubectl(t, "get", "pod", pod, "-o", "jsonpath={.status.podIPs[*].ip}")
	network, err := netip.ParsePrefix(c.kubectl(t, "get", "node", node, "-o", "jsonpath={.spec.podCIDR}"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := netip.ParseAddr(ip); err != nil || !network.Contains(a) {
		t.Fatalf("pod %s has the address %q, not one of %s", pod, ip, network)
	}
	return ip
}
