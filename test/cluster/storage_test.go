package cluster

import (
	"os"
	"strings"
	"testing"
)

// TestStorage: a node makes the volumes of claims and removes them, and shows the logs of its pods to pods that collect
// them.
func TestStorage(t *testing.T) {
	c := startControlPlane(t)
	c.startNode(t, "attic")
	t.Run("claims", func(t *testing.T) { testClaims(t, c) })
	t.Run("logs", func(t *testing.T) { testCollector(t, c) })
	t.Run("csi", func(t *testing.T) { testDriver(t, c) })
}

const claims = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: kept}
provisioner: podrun.dev/local
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Retain
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec: {storageClassName: kept, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`

const writer = `
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 1000, fsGroup: 2000}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: kept, persistentVolumeClaim: {claimName: kept}}
  containers:
  - name: main
    image: "` + image + `"
    command: [sh, -c, "echo again >>/data/file; cat /data/file; stat -c %g /data/file; exec sleep 1000"]
    volumeMounts: [{name: data, mountPath: /data}, {name: kept, mountPath: /kept}]
`

// testClaims: a claim without a class has a directory of the node, which its pods share, and which goes with it. The
// directory of a claim whose class keeps it stays.
func testClaims(t *testing.T, c *controlPlane) {
	c.apply(t, claims+writer)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/writer", "--timeout="+timeout.String())
	path := func(claim string) string {
		volume := c.kubectl(t, "get", "pvc", claim, "-o", "jsonpath={.spec.volumeName}")
		return c.kubectl(t, "get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
	}
	data, kept := path("data"), path("kept")
	c.kubectl(t, "delete", "pod/writer", "--timeout="+timeout.String())
	c.apply(t, writer)
	c.waitFor(t, "what both pods have written", func() bool {
		out, _ := c.kubectlCommand("logs", "writer").Output()
		return string(out) == "again\nagain\n2000\n"
	})
	c.kubectl(t, "delete", "pod/writer", "pvc/data", "pvc/kept", "--timeout="+timeout.String())
	c.waitFor(t, "one volume is left", func() bool {
		return c.kubectl(t, "get", "pv", "-o", "jsonpath={range .items[*]}{.spec.claimRef.name} {.status.phase}{end}") == "kept Released"
	})
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the directory %s: %v", data, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

const collector = `
apiVersion: v1
kind: Pod
metadata: {name: speaker}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: files, image: {reference: "` + image + `", pullPolicy: IfNotPresent}}]
  containers:
  - name: main
    image: "` + image + `"
    command: [sh, -c, "test -e /files/bin/sh && echo hello; exec sleep 1000"]
    volumeMounts: [{name: files, mountPath: /files}]
---
apiVersion: v1
kind: Pod
metadata: {name: collector}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: logs, hostPath: {path: /var/log}}]
  containers:
  - name: main
    image: "` + image + `"
    command: [sh, -c, "until cat /var/log/containers/speaker_default_main-*.log 2>/dev/null; do sleep 0.1; done; exec sleep 1000"]
    volumeMounts: [{name: logs, mountPath: /var/log}]
`

// testCollector: a pod that mounts the host's logs reads what another pod of the node has written, until that pod is
// removed. The other pod writes it if it has the files of an image.
func testCollector(t *testing.T, c *controlPlane) {
	c.apply(t, collector)
	c.waitFor(t, "what the other pod has written", func() bool {
		out, _ := c.kubectlCommand("logs", "collector").Output()
		return strings.HasSuffix(string(out), " stdout F hello\n")
	})
	c.kubectl(t, "delete", "pod/speaker", "--timeout="+timeout.String())
	c.waitFor(t, "the end of its logs", func() bool {
		out, err := c.kubectlCommand("exec", "collector", "--", "ls", "/var/log/pods", "/var/log/containers").Output()
		return err == nil && strings.Contains(string(out), "collector_default_main-") && !strings.Contains(string(out), "speaker")
	})
	c.kubectl(t, "delete", "pod/collector", "--timeout="+timeout.String())
}

// testDriver: a pod whose volume needs a driver waits, and an event says so.
func testDriver(t *testing.T, c *controlPlane) {
	c.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: driven}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: data, csi: {driver: example.com}}]
  containers: [{name: main, image: "`+image+`"}]
`)
	c.waitFor(t, "an event", func() bool {
		return strings.Contains(c.kubectl(t, "get", "events", "--field-selector=reason=FailedMount", "-o", "jsonpath={.items[*].message}"), "podrun does not mount csi")
	})
	c.kubectl(t, "delete", "pod/driven", "--timeout="+timeout.String())
}
