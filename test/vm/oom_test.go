package vm

import (
	"fmt"
	"regexp"
	"testing"
)

// oomRounds, run by dev, runs n pods in which one container reaches its own limit and
// another that of the pod, and says what is not as it has to be.
const oomRounds = `cat >hogs.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: hogs}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  resources: {limits: {memory: 64Mi}}
  containers:
  - {name: own, image: "localhost/podrun-example:1", command: [tail, /dev/zero], resources: {limits: {memory: 16Mi}}}
  - {name: whole, image: "localhost/podrun-example:1", command: [sh, -c, "sleep 1; exec tail /dev/zero"]}
Y
for i in $(seq %d); do
	podrun/bin/podrun up hogs.yaml >/dev/null 2>&1 && echo "round $i: the pod succeeded"
	status=$(podrun/bin/podrun get pod hogs -o yaml)
	[ "$(echo "$status" | grep -c 'reason: OOMKilled')$(echo "$status" | grep -c 'exitCode: 137')" = 22 ] || echo "round $i: $status"
	grep -rs 'supervisor was killed' .local/share/podrun/pods /run/user/1000/podrun/pods
	podrun/bin/podrun down hogs >/dev/null
done
true`

// ours is what the kernel says when it kills a process of podrun's for want of memory.
var ours = regexp.MustCompile(`Killed process [0-9]+ \(podrun`)

// TestOOM: whichever limit of a pod is reached, its containers end as OOMKilled, and
// no supervisor, keeper or half-made container is the kernel's victim: five times, or as
// often as make torture-vm says.
func TestOOM(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	if bad := m.must(t, "session", "sh", "-c", fmt.Sprintf(oomRounds, rounds(t, 5))); bad != "" {
		t.Errorf("not as it has to be:\n%s", bad)
	}
	kernel := m.must(t, "root", "journalctl", "-q", "-k", "-o", "cat")
	if said := ours.FindAllString(kernel, -1); said != nil {
		t.Errorf("the kernel has killed podrun's own: %q", said)
	}
	if n := len(regexp.MustCompile(`Killed process [0-9]+ \(tail`).FindAllString(kernel, -1)); n < 2*rounds(t, 5) {
		t.Errorf("the kernel has told of %d kills, in %d rounds", n, rounds(t, 5))
	}
	m.nothingLeft(t)
}
