package cluster

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestServices: the pods of a node reach the Services of the cluster.
func TestServices(t *testing.T) {
	c := startControlPlane(t)
	n := c.startNode(t, "attic")
	c.apply(t, servers)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "pod/one", "pod/two", "--timeout="+timeout.String())
	t.Run("forbidden", func(t *testing.T) { testSlicesForbidden(t, c, n) })
	t.Run("cluster IP", func(t *testing.T) { testClusterIP(t, c) })
}

// server is a pod with a web server that sends the pod's name.
func server(name string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {app: server}}
spec:
  hostname: ` + name + `
  subdomain: servers
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: ` + image + `
    command: [sh, -c, 'mkdir /www; hostname > /www/name; exec httpd -f -p 8080 -h /www']
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /name, port: http}, periodSeconds: 1}
---`
}

var servers = server("one") + server("two") + `
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "` + image + `", command: [sleep, "10000"]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: server}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: v1
kind: Service
metadata: {name: servers}
spec:
  clusterIP: None
  selector: {app: server}
  ports: [{name: http, port: 8080}]
`

// testSlicesForbidden: the node reports what it may not read, and how it is permitted.
func testSlicesForbidden(t *testing.T, c *controlPlane, n *node) {
	const hint = "kubectl create clusterrolebinding podrun-nodes --clusterrole=system:node-proxier --group=system:nodes"
	c.waitFor(t, "the hint", func() bool { return strings.Contains(readFile(t, n.file("agent.log")), hint) })
	if out, err := c.inClient("timeout", "20", "wget", "-q", "-O-", "http://"+c.clusterIP(t, "web")+"/name").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") {
		t.Errorf("a Service without endpoints: %v\n%s", err, out)
	}
	words := strings.Fields(hint)
	c.kubectl(t, words[1:]...)
}

// inClient returns a call of a command in the pod client.
func (c *controlPlane) inClient(words ...string) *exec.Cmd {
	return c.kubectlCommand(append([]string{"exec", "client", "--"}, words...)...)
}

func (c *controlPlane) clusterIP(t *testing.T, service string) string {
	t.Helper()
	return c.kubectl(t, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
}

// answers returns what several connections from the client to a URL receive, sorted and each once.
func (c *controlPlane) answers(url string) []string {
	out, _ := c.inClient("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do timeout 20 wget -q -O- "+url+" || echo failed; done").Output()
	list := strings.Fields(string(out))
	slices.Sort(list)
	return slices.Compact(list)
}

// waitForAnswers waits until several connections from the client to a URL receive these answers.
func (c *controlPlane) waitForAnswers(t *testing.T, url string, want ...string) {
	t.Helper()
	c.waitFor(t, url+" answers "+strings.Join(want, ", "), func() bool { return slices.Equal(c.answers(url), want) })
}

// testClusterIP: connections to a Service's address reach its pods, as they come and go.
func testClusterIP(t *testing.T, c *controlPlane) {
	url := "http://" + c.clusterIP(t, "web") + "/name"
	c.waitForAnswers(t, url, "one", "two")
}
