package cluster

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// killsEnv is how often TestKills kills the agent; 20 times without it.
const killsEnv = "PODRUN_CLUSTER_KILLS"

// TestKills: the agent is killed while pods come and go. A pod that stays does not notice; in the end there is what
// the cluster wants, no container was started twice, and the host has no pod more.
func TestKills(t *testing.T) {
	c := startControlPlane(t)
	n := c.startNode(t, "attic")
	kills := 20
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	c.apply(t, web)
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: fixed}, spec: {containers: [{name: main, image: "`+image+`", command: [sleep, "100000"]}]}}`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/fixed", "--timeout="+timeout.String())
	fixed := c.containerIDs(t)["fixed/main"]
	for i := range kills {
		c.kubectl(t, "scale", "deployment/web", "--replicas="+strconv.Itoa(1+i%4))
		if i%3 == 0 { // otherwise the agent is killed while it starts or stops pods
			c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
		}
		n.killAgent(t)
		n.startAgent()
	}
	c.kubectl(t, "scale", "deployment/web", "--replicas=3")
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	if got := c.containerIDs(t)["fixed/main"]; got != fixed {
		t.Errorf("the container was %s and is %s", fixed, got)
	}
	defer func() {
		if t.Failed() {
			t.Logf("the cluster has\n%s\nthe host has\n%s", c.kubectl(t, "get", "pods", "-o", "wide"), n.podrun(t, "get", "pods", "-A", "-o", "wide"))
		}
	}()
	c.waitFor(t, "the host has the cluster's pods and no other", func() bool {
		pods := c.kubectl(t, "get", "pods", "-o", "name")
		return strings.Count(pods, "\n") == 4 && pods == n.podrun(t, "get", "pods", "-o", "name")
	})
	if got := strings.Fields(c.kubectl(t, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")); strings.Join(got, "") != "0000" {
		t.Errorf("restarts: %v", got)
	}
	c.kubectl(t, "delete", "deployment/web", "pod/fixed", "--grace-period=1", "--timeout="+timeout.String())
}
