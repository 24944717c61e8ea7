package cluster

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// away is two Deployments on the second node. One has what the page on joining a cluster shows.
const away = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: stays}
spec:
  selector: {matchLabels: {app: stays}}
  template:
    metadata: {labels: {app: stays}}
    spec:
      nodeSelector: {kubernetes.io/hostname: away-2}
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}
      containers: [{name: main, image: ` + image + `, command: [sleep, "100000"]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: goes}
spec:
  selector: {matchLabels: {app: goes}}
  template:
    metadata: {labels: {app: goes}}
    spec:
      nodeSelector: {kubernetes.io/hostname: away-2}
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: ` + image + `, command: [sleep, "100000"]}]
`

// absence is longer than the control plane keeps the pods of a node that does not answer: five minutes, unless the pods say
// otherwise (kubernetes: plugin/pkg/admission/defaulttolerationseconds).
const absence = 10 * time.Minute

// TestAbsence: a node without API server for ten minutes keeps its pods. The control plane replaces those that do not tolerate
// it.
func TestAbsence(t *testing.T) {
	d := newDeveloper(t)
	d.podrun(t, "cluster", "create", "away", "--nodes", "2")
	d.apply(t, away)
	for _, name := range []string{"stays", "goes"} {
		d.kubectl(t, "rollout", "status", "deployment/"+name, "--timeout="+timeout.String())
	}
	pods := func(app string) string {
		return d.kubectl(t, "get", "pods", "-l", "app="+app, "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID} {end}")
	}
	stays, goes := pods("stays"), pods("goes")
	d.setLink(t, "down")
	d.kubectl(t, "wait", "--for=condition=Ready=Unknown", "node/away-2", "--timeout="+timeout.String())
	<-time.After(absence)
	if got := d.kubectl(t, "get", "pods", "-l", "app=goes", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); got == "" {
		t.Error("the control plane has not replaced the pod that tolerates five minutes")
	}
	d.setLink(t, "up")
	d.kubectl(t, "wait", "--for=condition=Ready", "node/away-2", "--timeout="+timeout.String())
	d.kubectl(t, "rollout", "status", "deployment/goes", "--timeout="+timeout.String())
	d.waitFor(t, "the end of the replaced pod", func() bool {
		now := pods("goes")
		return now != "" && !strings.Contains(now, strings.Fields(goes)[0])
	})
	if got := pods("stays"); got != stays {
		t.Errorf("after the absence there are the pods and containers %q, not %q", got, stays)
	}
	d.kubectl(t, "exec", "deploy/stays", "--", "true")
}

// setLink sets the link between the first node and the second one up or down.
func (d *developer) setLink(t *testing.T, state string) {
	t.Helper()
	pid := strings.TrimSpace(run(t, exec.Command("pgrep", "-o", "-f", "/podrun node --kubeconfig=/etc/kubernetes/node-1.conf")))
	run(t, exec.Command("nsenter", "--preserve-credentials", "--user", "--net", "--target", pid, "ip", "link", "set", "node2", state))
}
