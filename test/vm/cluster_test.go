package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// clusterMake, run by dev, makes a cluster.
const clusterMake = clusterEnv + `
for name in $(podrun cluster images); do
	program=${name##*/}
	podrun image import cluster/${program%%:*}.tar $name
done
rm cluster/*.tar
podrun cluster create dev --wait 30m`

// clusterEnv has what the scripts below share: kubectl, and the limits of the pod as its container sees them.
const clusterEnv = `set -e
PATH=$HOME/cluster:` + home + `/bin:$PATH
limits() { kubectl exec limited -- cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max | xargs; }
`

// clusterLimits, run by dev, makes a pod with limits, changes them, and uses more memory than they allow.
const clusterLimits = clusterEnv + `
kubectl apply -f - <<Y
apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: localhost/podrun-example:1
    command: [sleep, "100000"]
    resources: {requests: {memory: 32Mi, cpu: 100m}, limits: {memory: 64Mi, cpu: 500m}}
Y
kubectl wait --for=condition=Ready pod/limited --timeout=20m
limits
kubectl patch pod limited --subresource resize -p '{"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "96Mi", "cpu": "700m"}}}]}}'
until [ "$(kubectl get pod limited -o jsonpath='{.status.containerStatuses[0].resources.limits.memory}')" = 96Mi ]; do sleep 1; done
limits
kubectl exec limited -- sh -c 'head -c 200m /dev/zero | tail' || true
until kubectl get pod limited -o jsonpath='{.status.containerStatuses[0].lastState.terminated.reason}' | grep -x OOMKilled; do sleep 1; done`

// clusterBooted, run by dev, waits until the pod runs again, and prints its limits.
const clusterBooted = clusterEnv + `
until [ "$(limits 2>/dev/null)" ]; do sleep 2; done
limits`

// TestCluster: where cgroups are delegated, the limits of the pods of podrun cluster hold and change in place. The cluster
// starts at boot.
func TestCluster(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian", "VM_MEM=3072")
	m.script(t, "put", stage(t, "cluster"), "/home/dev")
	dev := func(script string) string {
		t.Helper()
		return m.must(t, "session", "timeout", "2400", "sh", "-c", script)
	}
	dev(clusterMake)
	const before, after = "67108864 50000 100000", "100663296 70000 100000"
	if got := dev(clusterLimits); !strings.Contains(got, "\n"+before+"\n") || !strings.Contains(got, "\n"+after+"\n") {
		t.Errorf("the limits are not %q and %q:\n%s", before, after, got)
	}
	m.testResize(t)
	dev(clusterEnv + "podrun cluster stop dev && podrun cluster start dev --at-boot --wait 30m")
	m.script(t, "reboot")
	if got := strings.TrimSpace(dev(clusterBooted)); got != after {
		t.Errorf("after the boot the limits are %q, not %q", got, after)
	}
	dev(clusterEnv + "podrun cluster delete dev")
	m.nothingLeft(t)
}

// resizeTests are the names of Kubernetes' tests for certified clusters that change the limits of running pods.
const resizeTests = `Pod InPlace Resize.*\[Conformance\]`

// testResize runs resizeTests with the machine's cluster. make conformance cannot: an ordinary user has no right to change cgroups of version 1.
func (m *machine) testResize(t *testing.T) {
	t.Helper()
	programs := stage(t, "conformance")
	e2e := filepath.Join(programs, "e2e.test")
	images, err := exec.Command(e2e, "--list-images").Output()
	if err != nil {
		t.Fatal(err)
	}
	m.script(t, "put", filepath.Join(programs, "busybox.tar"), "/home/dev")
	for _, name := range regexp.MustCompile(`\S+/busybox:\S+`).FindAllString(string(images), -1) {
		m.must(t, "session", home+"/bin/podrun", "image", "import", "busybox.tar", name)
	}
	config := m.must(t, "session", home+"/bin/podrun", "cluster", "kubeconfig", "dev")
	port := regexp.MustCompile(`https://127\.0\.0\.1:(\d+)`).FindStringSubmatch(config)
	if port == nil {
		t.Fatalf("podrun cluster kubeconfig printed no server:\n%s", config)
	}
	m.script(t, "forward", port[1])
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(e2e, "--kubeconfig="+path, "--provider=skeleton", "--minStartupPods=0", "--ginkgo.focus="+resizeTests, "--ginkgo.no-color", "--ginkgo.timeout=2h")
	cmd.Stderr = os.Stderr
	log, err := cmd.Output()
	if err != nil || !regexp.MustCompile(`(?m)^SUCCESS! -- 6 Passed `).Match(log) {
		t.Errorf("Kubernetes' tests: %v\n%s", err, log)
	}
}
