package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestServices: the pods of a node reach the Services of the cluster.
func TestServices(t *testing.T) {
	c := startControlPlane(t)
	c.kubectl(t, "delete", "clusterrolebinding", "podrun-nodes")
	n := c.startNode(t, "attic")
	c.apply(t, servers)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "pod/one", "pod/two", "--timeout="+timeout.String())
	t.Run("forbidden", func(t *testing.T) { testSlicesForbidden(t, c, n) })
	t.Run("cluster IP", func(t *testing.T) { testClusterIP(t, c) })
	t.Run("names", func(t *testing.T) { testServiceNames(t, c) })
	t.Run("node port", func(t *testing.T) { testNodePort(t, c) })
	t.Run("affinity", func(t *testing.T) { testAffinity(t, c) })
	t.Run("rollout", func(t *testing.T) { testRollout(t, c.developer) })
	t.Run("API server", func(t *testing.T) { testAPIServer(t, c) })
	t.Run("environment", func(t *testing.T) { testServiceEnvironment(t, c) })
	t.Run("local Service", func(t *testing.T) { testLocalService(t, c, n) })
	t.Run("own pods", func(t *testing.T) { testOwnPods(t, c, n) })
	t.Run("changes", func(t *testing.T) { testServiceChanges(t, c, n) })
	t.Run("offline", func(t *testing.T) { testServicesOffline(t, c, n) })
	t.Run("options", func(t *testing.T) { testDNSOptions(t, c, n) })
	t.Run("other node", func(t *testing.T) { testOtherNode(t, c) })
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

const client = `
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "` + image + `", command: [sleep, "10000"]}]
---
`

var servers = server("one") + server("two") + client + `
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
func (d *developer) inClient(words ...string) *exec.Cmd {
	return d.kubectlCommand(append([]string{"exec", "client", "--"}, words...)...)
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

// testServiceNames: the names of Services, of their pods and of ExternalNames lead to the pods.
func testServiceNames(t *testing.T, c *controlPlane) {
	c.kubectl(t, "create", "service", "externalname", "alias", "--external-name=web.default.svc.cluster.local")
	for _, name := range []string{"web", "web.default", "web.default.svc.cluster.local", "servers:8080", "alias.default.svc"} {
		c.waitForAnswers(t, "http://"+name+"/name", "one", "two")
	}
	c.waitForAnswers(t, "http://two.servers.default.svc.cluster.local:8080/name", "two")
}

// testNodePort: a port of the host leads to the pods of its Service.
func testNodePort(t *testing.T, c *controlPlane) {
	c.kubectl(t, "patch", "service", "web", "-p", `{"spec": {"type": "NodePort", "externalTrafficPolicy": "Local"}}`)
	url := "http://" + c.address + ":" + c.kubectl(t, "get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}") + "/name"
	got := map[string]bool{}
	c.waitFor(t, "both pods by the node port", func() bool {
		response, err := httpClient.Get(url)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		got[strings.TrimSpace(string(text))] = err == nil
		return got["one"] && got["two"]
	})
	c.waitForAnswers(t, url, "one", "two")
}

// testAffinity: all connections of a client reach one pod, until it has not connected for the timeout.
func testAffinity(t *testing.T, c *controlPlane) {
	c.kubectl(t, "patch", "service", "web", "-p", `{"spec": {"sessionAffinity": "ClientIP"}}`)
	c.waitFor(t, "one pod answers", func() bool { return len(c.answers("http://web/name")) == 1 })
	c.kubectl(t, "patch", "service", "web", "-p", `{"spec": {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}}}`)
	got := map[string]bool{}
	c.waitFor(t, "another pod answers after the timeout", func() bool {
		out, err := c.inClient("sh", "-c", "sleep 2; timeout 20 wget -q -O- http://web/name").Output()
		got[string(out)] = err == nil
		return got["one\n"] && got["two\n"]
	})
	c.kubectl(t, "patch", "service", "web", "-p", `{"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}}`)
	c.waitForAnswers(t, "http://web/name", "one", "two")
}

// rolling is a Deployment without preStop hooks. Its server closes its port at SIGTERM, and then ends its requests.
const rolling = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: rolling}
spec:
  replicas: 3
  selector: {matchLabels: {app: rolling}}
  template:
    metadata: {labels: {app: rolling}}
    spec:
      containers:
      - name: main
        image: ` + image + `
        command: [sh, -c, 'mkdir /www; hostname > /www/name; httpd -f -p 8080 -h /www & trap "kill $!; sleep 5; exit" TERM; wait']
        readinessProbe: {httpGet: {path: /name, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: rolling}
spec:
  selector: {app: rolling}
  ports: [{port: 80, targetPort: 8080}]
`

// TestRollout: the same in a cluster whose nodes are networks of their own.
func TestRollout(t *testing.T) {
	d := newDeveloper(t)
	d.podrun(t, "cluster", "create")
	d.apply(t, client)
	d.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "--timeout="+timeout.String())
	testRollout(t, d)
}

// testRollout: no request through a Service fails while the pods of a Deployment are replaced.
func testRollout(t *testing.T, d *developer) {
	rollout := func() { d.kubectl(t, "rollout", "status", "deployment/rolling", "--timeout="+timeout.String()) }
	d.apply(t, rolling)
	rollout()
	d.waitFor(t, "the Service answers", func() bool {
		return d.inClient("timeout", "20", "wget", "-q", "-O-", "http://rolling/name").Run() == nil
	})
	requests := d.inClient("timeout", "600", "sh", "-c", "until [ -e /tmp/enough ]; do wget -q -O- http://rolling/name 2>&1 || echo failed; done")
	var out bytes.Buffer
	requests.Stdout = &out
	if err := requests.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d.kubectl(t, "rollout", "restart", "deployment/rolling")
		rollout()
	}
	run(t, d.inClient("touch", "/tmp/enough"))
	if err := requests.Wait(); err != nil {
		t.Fatal(err)
	}
	answers := strings.Count(out.String(), "rolling-")
	t.Logf("%d answers", answers)
	if failed := strings.Count(out.String(), "failed"); failed > 0 || answers == 0 {
		t.Errorf("%d requests failed, %d had an answer:\n%s", failed, answers, regexp.MustCompile(`rolling-\S+\n`).ReplaceAllString(out.String(), ""))
	}
	d.kubectl(t, "delete", "deployment/rolling", "service/rolling", "--timeout="+timeout.String())
}

// testAPIServer: a pod reaches the API server by its Service, with the token of its ServiceAccount.
func testAPIServer(t *testing.T, c *controlPlane) {
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: asker}, spec: {terminationGracePeriodSeconds: 0,
		containers: [{name: main, image: "`+image+`", command: [sleep, "10000"], volumeMounts: [{name: programs, mountPath: /programs}]}],
		volumes: [{name: programs, hostPath: {path: "`+c.programs+`"}}]}}`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/asker", "--timeout="+timeout.String())
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	for _, server := range []string{"", // by the environment
		"--server=https://kubernetes.default.svc --certificate-authority=" + account + "ca.crt --token=$(cat " + account + "token)"} {
		if got := c.kubectl(t, "exec", "asker", "--", "sh", "-c", "/programs/kubectl auth whoami -o jsonpath={.status.userInfo.username} "+server); got != "system:serviceaccount:default:default" {
			t.Errorf("kubectl %s in a pod is %q", server, got)
		}
	}
	c.kubectl(t, "delete", "pod/asker", "--timeout="+timeout.String())
}

// testServiceEnvironment: containers have the addresses of Services in their environment, as the kubelet gives them.
func testServiceEnvironment(t *testing.T, c *controlPlane) {
	c.kubectl(t, "create", "namespace", "other")
	c.kubectl(t, "wait", "--for=create", "serviceaccount/default", "-n", "other", "--timeout="+timeout.String())
	for _, tc := range []struct {
		namespace string
		links     bool
		want      string
	}{
		{"default", true, "KUBERNETES_SERVICE_HOST=" + firstService + "\nWEB_SERVICE_HOST=" + c.clusterIP(t, "web") + "\n"},
		{"default", false, "KUBERNETES_SERVICE_HOST=" + firstService + "\n"},
		{"other", true, "KUBERNETES_SERVICE_HOST=" + firstService + "\n"},
	} {
		c.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: env, namespace: %s}, spec: {enableServiceLinks: %t, restartPolicy: Never,
			containers: [{name: main, image: %q, command: [sh, -c, "env | grep SERVICE_HOST | sort"]}]}}`, tc.namespace, tc.links, image))
		c.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/env", "-n", tc.namespace, "--timeout="+timeout.String())
		if got := c.kubectl(t, "logs", "env", "-n", tc.namespace); got != tc.want {
			t.Errorf("namespace %s, enableServiceLinks %t: %q, want %q", tc.namespace, tc.links, got, tc.want)
		}
		c.kubectl(t, "delete", "pod/env", "-n", tc.namespace, "--timeout="+timeout.String())
	}
}

// testLocalService: a Service of the user stays when the cluster has one of its name. A Service of the cluster does not
// keep the user from one of that name.
func testLocalService(t *testing.T, c *controlPlane, n *node) {
	cmd := n.command("up", "-f", "-")
	cmd.Stdin = strings.NewReader(`{apiVersion: v1, kind: Service, metadata: {name: own}, spec: {selector: {app: local}, ports: [{port: 80}]}}`)
	run(t, cmd)
	before := n.podrun(t, "get", "service", "own", "-o", "json")
	c.kubectl(t, "create", "service", "clusterip", "own", "--tcp=80")
	c.kubectl(t, "create", "service", "clusterip", "later", "--tcp=80")
	c.waitFor(t, "the host has the cluster's Services", func() bool { return strings.Contains(n.podrun(t, "get", "services", "-o", "name"), "later") })
	c.kubectl(t, "delete", "service", "own", "later")
	if after := n.podrun(t, "get", "service", "own", "-o", "json"); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	n.podrun(t, "delete", "service", "own")
	cmd = n.command("up", "-f", "-")
	cmd.Stdin = strings.NewReader(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`)
	run(t, cmd)
	n.podrun(t, "delete", "service", "web")
}

// testOwnPods: a pod of the user reaches the cluster's Services only with the annotation.
func testOwnPods(t *testing.T, c *controlPlane, n *node) {
	address := c.clusterIP(t, "web")
	for annotations, want := range map[string]string{"{}": "refused unknown", `{podrun.dev/cluster-services: "true"}`: "reached reached"} {
		cmd := n.command("up", "-f", "-")
		cmd.Stdin = strings.NewReader(`{apiVersion: v1, kind: Pod, metadata: {name: visitor, annotations: ` + annotations + `}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0,
			containers: [{name: main, image: "` + image + `", command: [sh, -c, "for host in ` + address + ` web.default.svc.cluster.local; do timeout 20 wget -q -O /dev/null http://$host/name 2>&1 && echo reached; done; true"]}]}}`)
		var got []string
		for line := range strings.Lines(run(t, cmd)) {
			for word, text := range map[string]string{"refused": "refused", "unknown": "bad address", "reached": "reached"} {
				if strings.Contains(line, text) {
					got = append(got, word)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("a pod with the annotations %s: %q, want %s", annotations, got, want)
		}
		n.podrun(t, "down", "visitor")
	}
}

// testServiceChanges: a changed Service, changed endpoints and a deleted Service have their effect.
func testServiceChanges(t *testing.T, c *controlPlane, n *node) {
	c.kubectl(t, "patch", "service", "web", "--type=json", "-p", `[{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]`)
	c.waitForAnswers(t, "http://web:81/name", "one", "two")
	c.kubectl(t, "label", "pod", "one", "app-")
	c.waitForAnswers(t, "http://web:81/name", "two")
	c.waitForAnswers(t, "http://servers:8080/name", "two")
	address := c.clusterIP(t, "web")
	c.kubectl(t, "delete", "service", "web")
	c.waitFor(t, "the Service is gone from the host", func() bool { return !strings.Contains(n.podrun(t, "get", "services", "-o", "name"), "web") })
	for _, host := range []string{"web", address} {
		if got := c.answers("http://" + host + ":81/name"); !slices.Equal(got, []string{"failed"}) {
			t.Errorf("%s of a deleted Service: %q", host, got)
		}
	}
}

// testServicesOffline: while the API server is away, a new agent keeps the Services.
func testServicesOffline(t *testing.T, c *controlPlane, n *node) {
	c.kubectl(t, "expose", "pod", "two", "--name=late", "--port=80", "--target-port=8080")
	c.waitForAnswers(t, "http://late/name", "two")
	n.killAgent(t)
	resume := stopAPIServer(t)
	n.startAgent()
	c.waitFor(t, "the agent notices that", func() bool { return strings.Contains(readFile(t, n.file("agent.log")), "read the pods of node attic") })
	cmd := n.command("up", "-f", "-") // a pod that starts now
	cmd.Stdin = strings.NewReader(`{apiVersion: v1, kind: Pod, metadata: {name: visitor, annotations: {podrun.dev/cluster-services: "true"}}, spec: {restartPolicy: Never,
		containers: [{name: main, image: "` + image + `", command: [timeout, "20", wget, -q, -O-, "http://late/name"]}]}}`)
	if got := run(t, cmd); !strings.Contains(got, "two") {
		t.Errorf("a Service while the API server is away: %q", got)
	}
	n.podrun(t, "down", "visitor")
	resume()
	c.kubectl(t, "label", "pod", "one", "app=server")
	c.waitForAnswers(t, "http://servers:8080/name", "one", "two")
}

// testDNSOptions: pods query the cluster's name servers, if the node names them.
func testDNSOptions(t *testing.T, c *controlPlane, n *node) {
	n.killAgent(t)
	n.args = append(n.args, "--cluster-dns", "192.0.2.53,192.0.2.54", "--cluster-domain", "k8s.example")
	n.startAgent()
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: resolver}, spec: {restartPolicy: Never, hostname: h, subdomain: sub,
		containers: [{name: main, image: "`+image+`", command: [sh, -c, "cat /etc/resolv.conf; grep -o 'h.sub.*example' /etc/hosts | sort -u"]}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/resolver", "--timeout="+timeout.String())
	got := c.kubectl(t, "logs", "resolver")
	for _, want := range []string{"search default.svc.k8s.example svc.k8s.example k8s.example", "\nnameserver 192.0.2.53\nnameserver 192.0.2.54\noptions ndots:5\n", "h.sub.default.svc.k8s.example\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}

// testOtherNode: pods of another node, which may have the addresses of pods of this one, are no endpoints, except those
// with the host's network.
func testOtherNode(t *testing.T, c *controlPlane) {
	c.startNode(t, "cellar")
	t.Cleanup(func() { c.kubectl(t, "delete", "pod", "far", "hosted", "--timeout="+timeout.String()) }) // before the node ends
	c.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: far, labels: {app: far}}
spec: {nodeName: cellar, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "`+image+`", command: [sleep, "10000"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: hosted, labels: {app: hosted}}
spec:
  nodeName: cellar
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "`+image+`", command: [sh, -c, 'mkdir /www; echo hosted > /www/name; exec httpd -f -p 18080 -h /www']}]
`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/far", "pod/hosted", "--timeout="+timeout.String())
	c.kubectl(t, "expose", "pod", "far", "--port=80", "--target-port=8080")
	c.waitFor(t, "the endpoint", func() bool {
		return c.kubectl(t, "get", "endpointslices", "-l", "kubernetes.io/service-name=far", "-o", "jsonpath={.items[*].endpoints[*].conditions.ready}") == "true"
	})
	c.kubectl(t, "expose", "pod", "hosted", "--port=80", "--target-port=18080")
	c.waitForAnswers(t, "http://"+c.clusterIP(t, "hosted")+"/name", "hosted")
	if out, err := c.inClient("timeout", "20", "wget", "-q", "-O-", "http://"+c.clusterIP(t, "far")+"/name").CombinedOutput(); err == nil || !strings.Contains(string(out), "refused") {
		t.Errorf("a pod of another node: %v\n%s", err, out)
	}
}
