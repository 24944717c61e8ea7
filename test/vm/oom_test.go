package vm

import (
	"fmt"
	"regexp"
	"testing"
)

// oomRounds, run by dev, runs n pods in which one container reaches its own limit and another the
// pod's, and prints wrong results.
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

// oomMany, run by dev, runs n pods whose twenty containers reach their own limits at the same
// time, and prints pods with missing container statuses or events.
const oomMany = `cat >many.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: many}
spec:
  restartPolicy: Never
  containers:
$(for i in $(seq 20); do
	echo "  - {name: h$i, image: 'localhost/podrun-example:1', command: [tail, /dev/zero], resources: {limits: {memory: 16Mi}}}"
done)
Y
for i in $(seq %d); do
	podrun/bin/podrun up many.yaml >/dev/null 2>&1 && echo "many $i: the pod succeeded"
	status=$(podrun/bin/podrun get pod many -o yaml)
	events=$(podrun/bin/podrun events many -o yaml | grep -c 'reason: OOMKilled')
	[ "$(echo "$status" | grep -c 'reason: OOMKilled') $(echo "$status" | grep -c 'exitCode: 137') $events" = "20 20 20" ] || echo "many $i: $events events: $status"
	podrun/bin/podrun down many >/dev/null
done
true`

// isOwnOOM matches the kernel's message about a podrun process that the OOM killer killed.
var isOwnOOM = regexp.MustCompile(`Killed process [0-9]+ \(podrun`)

// TestOOM: whichever limit of a pod is reached, its containers end as OOMKilled, and the OOM killer
// never kills a supervisor, a pod init or a half-made container. It runs five times, or as often as
// make torture-vm requests, which alone runs this. Every fifth round has a pod of many;
// debian/oom_events.txtar has a smaller one.
func TestOOM(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	run := func(script string, times int) (kernel string) {
		if bad := m.must(t, "session", "sh", "-c", fmt.Sprintf(script, times)); bad != "" {
			t.Errorf("not as it has to be:\n%s", bad)
		}
		return m.must(t, "root", "journalctl", "-q", "-k", "-o", "cat")
	}
	n := rounds(t, 5)
	kernel := run(oomRounds, n)
	if reported := len(regexp.MustCompile(`Killed process [0-9]+ \(tail`).FindAllString(kernel, -1)); reported < 2*n {
		t.Errorf("the kernel has reported %d kills, in %d rounds", reported, n)
	}
	kernel = run(oomMany, (n+4)/5)
	if output := isOwnOOM.FindAllString(kernel, -1); output != nil {
		t.Errorf("the kernel has killed podrun's own: %q", output)
	}
	m.nothingLeft(t)
}
