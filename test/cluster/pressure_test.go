package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// cards describes two devices.
const cards = `
cdiVersion: 0.6.0
kind: example.com/card
devices:
- {name: "0", containerEdits: {env: [CARD=0]}}
- {name: "1", containerEdits: {env: [CARD=1]}}
`

// pressed are pods of which the first two may be evicted. Pods with requests tolerate pressure of memory.
const pressed = `
apiVersion: v1
kind: Pod
metadata: {name: light}
spec:
  restartPolicy: Always
  containers: [{name: main, image: ` + image + `, command: [sleep, "100000"], resources: {requests: {cpu: 1m, memory: 1Gi, ephemeral-storage: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: heavy}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: ` + image + `, command: [sh, -c, "head -c 20000000 /dev/zero > /file; exec sleep 100000"], resources: {requests: {cpu: 1m}}, readinessProbe: {exec: {command: [sh, -c, 'test $(stat -c %s /file) = 20000000']}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: critical}
spec:
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: ` + image + `, command: [sleep, "100000"]}]
`

// TestPressure: a node under pressure evicts pods and keeps others away, as a kubelet does. Thresholds above what is available take
// the place of programs that use it up.
func TestPressure(t *testing.T) {
	c := startControlPlane(t)
	n := c.startNode(t, "attic")
	// almost returns a threshold that is met if a MiB of the node's capacity is in use.
	almost := func(signal, name string) string {
		capacity := resource.MustParse(c.kubectl(t, "get", "node/attic", "-o", "jsonpath={.status.capacity."+name+"}"))
		return signal + "<" + strconv.FormatInt(capacity.Value()-1<<20, 10)
	}
	t.Run("memory", func(t *testing.T) {
		testPressure(t, c, n, almost("memory.available", "memory"), "MemoryPressure", "memory-pressure", "memory", "Pod was rejected: The node had condition: [MemoryPressure]. ")
	})
	t.Run("disk", func(t *testing.T) {
		testPressure(t, c, n, almost("nodefs.available", "ephemeral-storage"), "DiskPressure", "disk-pressure", "ephemeral-storage", "Pod was rejected: The node had condition: [DiskPressure]. ")
	})
	t.Run("reserved", func(t *testing.T) { testReserved(t, c, n) })
	t.Run("devices", func(t *testing.T) { testDevices(t, c, n) })
	t.Run("claims", func(t *testing.T) { testResourceClaims(t, c) })
}

// restartAgent starts the agent again, with other arguments.
func (n *node) restartAgent(t *testing.T, args ...string) {
	t.Helper()
	n.killAgent(t)
	n.args = append([]string{"node", "--port", "0"}, args...)
	n.startAgent()
}

func testPressure(t *testing.T, c *controlPlane, n *node, threshold, condition, taint, resource, rejection string) {
	c.apply(t, pressed)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/light", "pod/heavy", "pod/critical", "--timeout="+timeout.String())
	n.restartAgent(t, "--eviction-hard", threshold)
	c.kubectl(t, "wait", "--for=condition="+condition, "node/attic", "--timeout="+timeout.String())
	c.kubectl(t, "wait", "--for=jsonpath={.status.reason}=Evicted", "pod/heavy", "--timeout="+timeout.String())
	status := c.kubectl(t, "get", "pod/heavy", "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="DisruptionTarget")].reason} {.status.message}`)
	if want := "Failed TerminationByKubelet The node was low on resource: " + resource + ". Threshold quantity: "; !strings.HasPrefix(status, want) || !strings.Contains(status, "Container main was using ") {
		t.Errorf("the status is %s", status)
	}
	c.waitFor(t, "the event of the pod", func() bool {
		return strings.Contains(c.kubectl(t, "get", "events", "--field-selector", "involvedObject.name=heavy,reason=Evicted", "-o", "jsonpath={.items[*].message}"), "The node was low on resource: "+resource)
	})
	c.waitFor(t, "the taint", func() bool {
		return strings.Contains(c.kubectl(t, "get", "node/attic", "-o", "jsonpath={.spec.taints[*].key}"), "node.kubernetes.io/"+taint)
	})
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {nodeName: attic, containers: [{name: main, image: "`+image+`"}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.reason}=Evicted", "pod/late", "--timeout="+timeout.String())
	if got := c.kubectl(t, "get", "pod/late", "-o", "jsonpath={.status.message}"); got != rejection {
		t.Errorf("the rejected pod says %q", got)
	}
	if got := c.kubectl(t, "get", "pod/critical", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"); got != "Running 0" {
		t.Errorf("the critical pod is %s", got)
	}
	log := string(readFile(t, n.file("agent.log")))
	if first, second := strings.Index(log, "pod default/heavy is evicted"), strings.Index(log, "pod default/light is evicted"); first < 0 || second >= 0 && second < first {
		t.Errorf("the order of the evictions is wrong:\n%s", log)
	}
	n.restartAgent(t)
	c.kubectl(t, "wait", "--for=condition="+condition+"=False", "node/attic", "--timeout="+timeout.String())
	c.waitFor(t, "the taint is gone", func() bool {
		return c.kubectl(t, "get", "node/attic", "-o", "jsonpath={.spec.taints[*].key}") == ""
	})
	c.kubectl(t, "delete", "pod", "--all", "--timeout="+timeout.String())
}

// testReserved: a container without a limit may use what the node's allocatable says, and reads it.
func testReserved(t *testing.T, c *controlPlane, n *node) {
	capacity := resource.MustParse(c.kubectl(t, "get", "node/attic", "-o", "jsonpath={.status.capacity.memory}"))
	n.restartAgent(t, "--system-reserved", "memory=1Gi", "--eviction-hard", "memory.available<1Gi")
	want := strconv.FormatInt(capacity.Value()-2<<30, 10)
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: reader}, spec: {restartPolicy: Never, containers: [{name: main, image: "`+image+`", command: [sh, -c, "echo -n $MEMORY"],
		env: [{name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/reader", "--timeout="+timeout.String())
	if got := c.kubectl(t, "logs", "pod/reader"); got != want {
		t.Errorf("the container reads %s, want %s", got, want)
	}
	n.restartAgent(t)
	c.kubectl(t, "delete", "pod/reader", "--timeout="+timeout.String())
}

// testDevices: the scheduler counts the devices of the node; no two pods have the same one.
// Without a grace period the API server forgets a pod before its device is free.
func testDevices(t *testing.T, c *controlPlane, n *node) {
	defer func() {
		if t.Failed() {
			t.Log(c.kubectl(t, "describe", "pods"))
		}
	}()
	dir := n.file(".config/cdi")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "card.yaml"), []byte(cards))
	c.waitFor(t, "the node has its devices", func() bool {
		return c.kubectl(t, "get", "node/attic", "-o", `jsonpath={.status.capacity.example\.com/card} {.status.allocatable.example\.com/card}`) == "2 2"
	})
	for _, name := range []string{"a", "b", "c"} {
		c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: `+name+`}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "`+image+`", command: [sleep, "100000"], resources: {limits: {example.com/card: 1}}}]}}`)
		if name != "c" {
			c.kubectl(t, "wait", "--for=condition=Ready", "pod/"+name, "--timeout="+timeout.String())
		}
	}
	c.waitFor(t, "the third waits", func() bool {
		return strings.Contains(c.kubectl(t, "get", "pod/c", "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`), "Insufficient example.com/card")
	})
	card := func(pod string) string { return c.kubectl(t, "exec", pod, "--", "sh", "-c", "echo -n $CARD") }
	if first, second := card("a"), card("b"); first+second != "01" && first+second != "10" {
		t.Errorf("the pods have the devices %q and %q", first, second)
	}
	first := card("a")
	c.kubectl(t, "delete", "pod/a", "--timeout="+timeout.String())
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/c", "--timeout="+timeout.String())
	if got := card("c"); got != first {
		t.Errorf("the third pod has the device %q, want %q", got, first)
	}
	c.kubectl(t, "delete", "pod", "--all", "--timeout="+timeout.String())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c.waitFor(t, "the devices are gone", func() bool {
		return c.kubectl(t, "get", "node/attic", "-o", `jsonpath={.status.allocatable.example\.com/card}`) == "0"
	})
}

// testResourceClaims: a pod with claims of devices does not run, and says why.
func testResourceClaims(t *testing.T, c *controlPlane) {
	c.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: claiming}
spec:
  nodeName: attic
  resourceClaims: [{name: card, resourceClaimName: none}]
  containers: [{name: main, image: `+image+`, resources: {claims: [{name: card}]}}]
`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError", "pod/claiming", "--timeout="+timeout.String())
	if got := c.kubectl(t, "get", "pod/claiming", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}"); !strings.Contains(got, "spec.resourceClaims: not supported yet: dynamic resource allocation") {
		t.Errorf("the reason is %q", got)
	}
	c.waitFor(t, "the event", func() bool {
		return strings.Contains(c.kubectl(t, "get", "events", "--field-selector", "involvedObject.name=claiming,reason=Failed", "-o", "jsonpath={.items[*].message}"), "dynamic resource allocation")
	})
	c.kubectl(t, "delete", "pod/claiming", "--timeout="+timeout.String())
}
