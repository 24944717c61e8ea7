package cluster

import (
	"slices"
	"strings"
	"testing"
)

// TestWorkloads: what Kubernetes makes of its workloads runs on three nodes.
func TestWorkloads(t *testing.T) {
	c := startControlPlane(t)
	for name, zone := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
		c.startNode(t, name, "--node-labels", "topology.kubernetes.io/zone="+zone)
	}
	t.Run("spread", func(t *testing.T) { testSpread(t, c) })
	t.Run("kinds", func(t *testing.T) { testKinds(t, c) })
	t.Run("drain", func(t *testing.T) { testDrain(t, c) })
}

// nodesOf returns the nodes of the pods with a label, sorted.
func (c *controlPlane) nodesOf(t *testing.T, selector string) []string {
	t.Helper()
	names := strings.Fields(c.kubectl(t, "get", "pods", "-l", selector, "-o", "jsonpath={.items[*].spec.nodeName}"))
	slices.Sort(names)
	return names
}

const spread = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: spread}
spec:
  replicas: 8
  selector: {matchLabels: {app: spread}}
  template:
    metadata: {labels: {app: spread, version: "1"}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spread}}}
      - {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spread}}}
      containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]
`

// testSpread: the pods of a Deployment are where two constraints want them, and a rolling update replaces all.
func testSpread(t *testing.T, c *controlPlane) {
	c.apply(t, spread)
	c.kubectl(t, "rollout", "status", "deployment/spread", "--timeout="+timeout.String())
	if got, want := c.nodesOf(t, "app=spread"), []string{"a1", "a1", "a2", "a2", "b1", "b1", "b1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("the pods are on %v, want %v", got, want)
	}
	c.apply(t, strings.Replace(spread, `version: "1"`, `version: "2"`, 1))
	c.kubectl(t, "rollout", "status", "deployment/spread", "--timeout="+timeout.String())
	c.waitFor(t, "the old pods are gone", func() bool { return len(c.nodesOf(t, "version=1")) == 0 })
	if got := len(c.nodesOf(t, "version=2")); got != 8 {
		t.Errorf("%d pods after the update", got)
	}
	c.kubectl(t, "delete", "deployment/spread", "--cascade=foreground", "--timeout="+timeout.String())
}

const kinds = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ordered}
spec:
  replicas: 2
  serviceName: ordered
  selector: {matchLabels: {app: ordered}}
  template:
    metadata: {labels: {app: ordered}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 3
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "` + image + `", command: [sh, -c, "echo done"]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: again}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          initContainers: [{name: first, image: "` + image + `", command: [sh, -c, "echo before"]}]
          containers: [{name: main, image: "` + image + `", command: [sh, -c, "echo done"]}]
`

// testKinds: a StatefulSet, a DaemonSet, a Job and a CronJob do what they are for.
func testKinds(t *testing.T, c *controlPlane) {
	c.apply(t, kinds)
	c.kubectl(t, "create", "job", "now", "--from=cronjob/again")
	c.kubectl(t, "rollout", "status", "statefulset/ordered", "--timeout="+timeout.String())
	c.kubectl(t, "rollout", "status", "daemonset/everywhere", "--timeout="+timeout.String())
	c.kubectl(t, "wait", "--for=condition=Complete", "job/once", "job/now", "--timeout="+timeout.String())
	if got, want := c.nodesOf(t, "app=everywhere"), []string{"a1", "a2", "b1"}; !slices.Equal(got, want) {
		t.Errorf("the DaemonSet is on %v, want %v", got, want)
	}
	for container, want := range map[string]string{"first": "before\n", "main": "done\n"} {
		if got := c.kubectl(t, "logs", "job/now", "-c", container); got != want {
			t.Errorf("the container %s of the CronJob's job wrote %q", container, got)
		}
	}
}

// testDrain: the pods of a drained node go to the others.
func testDrain(t *testing.T, c *controlPlane) {
	c.apply(t, strings.NewReplacer("name: spread", "name: moved", "app: spread", "app: moved", "DoNotSchedule", "ScheduleAnyway").Replace(spread))
	c.kubectl(t, "rollout", "status", "deployment/moved", "--timeout="+timeout.String())
	c.kubectl(t, "drain", "b1", "--ignore-daemonsets", "--force", "--timeout="+timeout.String())
	c.kubectl(t, "rollout", "status", "deployment/moved", "--timeout="+timeout.String())
	c.waitFor(t, "no pod is left on the drained node", func() bool { return !slices.Contains(c.nodesOf(t, "app=moved"), "b1") })
	if got := len(c.nodesOf(t, "app=moved")); got != 8 {
		t.Errorf("%d pods after the drain", got)
	}
}
