package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminatingPod records its stop signal in a claim.
const terminatingPod = `
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: HERE/disk}, claimRef: {namespace: default, name: data}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Mi}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers:
  - name: main
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, "trap 'touch /data/stopped; exit 0' TERM; echo ok >/data/index.html; httpd -p 8080 -h /data; touch /data/started; while :; do sleep 0.1; done"]
    volumeMounts: [{name: data, mountPath: /data}]
    startupProbe: {exec: {command: [test, -e, /data/started]}, periodSeconds: 1}
`

// TestPodLeavesServicesFirst: a container gets its stop signal after the pod has left its Services, here after the lock
// of the router's rules is free.
func TestPodLeavesServicesFirst(t *testing.T) {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	file, disk := filepath.Join(h.dir, "pod.yaml"), filepath.Join(h.dir, "disk")
	if err := os.Mkdir(disk, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(terminatingPod, "HERE", h.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := h.podrun("up", "-d", "--wait", file).CombinedOutput(); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	// Before that its being ready is still published, with the lock.
	for deadline := time.Now().Add(time.Minute); h.podrun("exec", "web", "--", "wget", "-q", "-O", "/dev/null", "http://web.default.svc/").Run() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the Service does not lead to the pod within a minute")
		}
	}
	lock, err := os.OpenFile(filepath.Join(h.dir, "data", "podrun", "services.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	down := h.podrun("down", "web")
	if err := down.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint := filepath.Join(h.dir, "run", "podrun", "pods", "default", "web", "endpoint.json")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); ; {
		if text, err := os.ReadFile(endpoint); err == nil && strings.Contains(string(text), `"terminating":true`) {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the pod does not leave its Services within 2 minutes")
		}
	}
	stopped := filepath.Join(disk, "stopped")
	if _, err := os.Stat(stopped); err == nil {
		t.Error("the container has its stop signal, and the router's rules still lead to the pod")
	}
	lock.Close()
	if err := down.Wait(); err != nil {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(stopped); err != nil {
		t.Errorf("the container had no stop signal: %v", err)
	}
}
