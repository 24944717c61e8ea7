package script

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/nodetest"
)

// userObjects are the user's objects of each kind to which a pod refers. HERE is a directory, REGISTRY a registry.
const userObjects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {key: secret-of-the-user}}
---
{apiVersion: v1, kind: Secret, metadata: {name: own}, stringData: {key: secret-of-the-user}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{"REGISTRY":{"auth":"dXNlcjpzZWNyZXQ="}}}'}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, imagePullSecrets: [{name: pull}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: own}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], hostPath: {path: HERE/disk}, claimRef: {namespace: default, name: bound}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: bound}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: own}, spec: {selector: {app: user}, ports: [{port: 80}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: user, labels: {app: user}}
spec:
  terminationGracePeriodSeconds: 0
  volumes:
  - {name: own, persistentVolumeClaim: {claimName: own}}
  - {name: bound, persistentVolumeClaim: {claimName: bound}}
  containers:
  - name: main
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, "echo secret-of-the-user | tee /own/file >/bound/file; sleep 1000"]
    env: [{name: KEY, valueFrom: {configMapKeyRef: {name: own, key: key}}}]
    volumeMounts: [{name: own, mountPath: /own}, {name: bound, mountPath: /bound}]
`

// nodeBed is a host that is a node of a cluster, with the API server.
type nodeBed struct {
	*host
	api *nodetest.APIServer
}

// startNode starts podrun node, until the test ends.
func startNode(t *testing.T) *nodeBed {
	t.Helper()
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	b := &nodeBed{h, nodetest.StartAPIServer(t)}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.api.Certificate().Raw})
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {token: t}}]}`, b.api.URL, base64.StdEncoding.EncodeToString(ca))
	file := filepath.Join(h.dir, "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.podrun("node", "--kubeconfig", file, "--node-name", "attic", "--port", "0")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	return b
}

// must runs podrun and returns its output.
func (b *nodeBed) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := b.podrun(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("podrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// startUser makes the user's objects, and starts the user's pod.
func (b *nodeBed) startUser(t *testing.T, registry string) {
	t.Helper()
	file := filepath.Join(b.dir, "user.yaml")
	if err := os.Mkdir(filepath.Join(b.dir, "disk"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.NewReplacer("HERE", b.dir, "REGISTRY", registry).Replace(userObjects)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(t, "up", "-d", "--wait", file)
}

// waitFor waits until ok is true.
func (b *nodeBed) waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("wait for %s: not within 2 minutes", what)
		}
	}
}

// clusterPod returns a pod of the cluster that prints what it finds of the user.
func clusterPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	sum := fnv.New32()
	sum.Write([]byte(name))
	p := nodetest.NewPod(name, fmt.Sprintf("00000000-0000-0000-0000-%012x", sum.Sum32()))
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.TerminationGracePeriodSeconds = new(int64(0))
	p.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "busybox", ImagePullPolicy: corev1.PullNever,
		Command: []string{"sh", "-c", "env; cat /v/* 2>/dev/null; nslookup own.default.svc.cluster.local; echo written >/v/file; true"},
	}}
	change(p)
	return p
}

func mount(p *corev1.Pod, source corev1.VolumeSource) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
}

// TestClusterSeesNoObjectOfTheUser: for a pod of a cluster only the objects of the cluster exist. The API server has
// none of those that the user has, of every kind to which a pod refers.
func TestClusterSeesNoObjectOfTheUser(t *testing.T) {
	b := startNode(t)
	b.startUser(t, "registry.test")
	reference := corev1.LocalObjectReference{Name: "own"}
	missing := map[string]struct {
		change  func(*corev1.Pod)
		message string // in the status, or in an event
	}{
		"env-configmap": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: "key"}}}}
		}, `configmap "own" not found`},
		"env-secret": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: "key"}}}}
		}, `secret "own" not found`},
		"from-configmap": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}}}
		}, `configmap "own" not found`},
		"from-secret": {func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}}}
		}, `secret "own" not found`},
		"volume-configmap": {func(p *corev1.Pod) {
			mount(p, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference}})
		}, `configmap "own" not found`},
		"volume-secret": {func(p *corev1.Pod) {
			mount(p, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}})
		}, `secret "own" not found`},
		"projected": {func(p *corev1.Pod) {
			mount(p, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: reference}}}}})
		}, `secret "own" not found`},
		"claim": {func(p *corev1.Pod) {
			mount(p, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "own"}})
		}, "failed to fetch PVC"},
		"claim-bound": {func(p *corev1.Pod) {
			mount(p, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "bound"}})
		}, "failed to fetch PVC"},
	}
	yes := new(true)
	optional := clusterPod("optional", func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Env = []corev1.EnvVar{
			{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: "key", Optional: yes}}},
			{Name: "Y", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: "key", Optional: yes}}},
		}
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference, Optional: yes}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference, Optional: yes}}}
		mount(p, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference, Optional: yes}}, {Secret: &corev1.SecretProjection{LocalObjectReference: reference, Optional: yes}},
		}}})
		p.Labels = map[string]string{"app": "user"} // the user's Service does not select it
	})
	b.api.PutPod(t, optional)
	for name, test := range missing {
		b.api.PutPod(t, clusterPod(name, test.change))
	}
	for name, test := range missing {
		b.waitFor(t, name+" reports "+test.message, func() bool {
			text, err := json.Marshal(b.api.Pod(name).Status)
			return err == nil && strings.Contains(string(text)+strings.Join(b.api.Events(name), "\n"), strings.ReplaceAll(test.message, `"`, `\"`)) ||
				slices.ContainsFunc(b.api.Events(name), func(e string) bool { return strings.Contains(e, test.message) })
		})
	}
	b.waitFor(t, "optional ends", func() bool { return b.api.Pod("optional").Status.Phase == corev1.PodSucceeded })
	log := b.must(t, "logs", "optional")
	if strings.Contains(log, "secret-of-the-user") || strings.Contains(log, "OWN_SERVICE") || !strings.Contains(log, "NXDOMAIN") {
		t.Errorf("a pod of the cluster has of the user:\n%s", log)
	}
	if files := b.must(t, "exec", "user", "--", "cat", "/own/file", "/bound/file"); strings.Contains(files, "written") {
		t.Errorf("a pod of the cluster has written to the user's claims: %s", files)
	}
	if page := b.must(t, "describe", "service", "own"); !endpointPattern.MatchString(page) {
		t.Errorf("the user's Service has other endpoints than the user's pod:\n%s", page)
	}
}

// endpointPattern matches the line of a Service's page with one endpoint.
var endpointPattern = regexp.MustCompile(`(?m)^Endpoints: +[0-9.]+:80$`)

// TestClusterObeysTheUser: a standard that a Namespace of the user enforces holds for the pods of a cluster in it.
func TestClusterObeysTheUser(t *testing.T) {
	b := startNode(t)
	file := filepath.Join(b.dir, "namespace.yaml")
	const text = `{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: baseline}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(t, "apply", "-f", file)
	b.api.PutPod(t, clusterPod("thief", func(p *corev1.Pod) {
		mount(p, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}})
	}))
	b.waitFor(t, "the refusal", func() bool {
		text, err := json.Marshal(b.api.Pod("thief").Status)
		return err == nil && strings.Contains(string(text)+strings.Join(b.api.Events("thief"), "\n"), "violates PodSecurity")
	})
}

// TestClusterUsesNoLoginOfTheUser: a pod of a cluster pulls with the pull secrets of the cluster, not with the user's of
// the same name.
func TestClusterUsesNoLoginOfTheUser(t *testing.T) {
	b := startNode(t)
	var mu sync.Mutex
	logins := 0
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "" {
			mu.Lock()
			logins++
			mu.Unlock()
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	t.Cleanup(registry.Close)
	name := strings.TrimPrefix(registry.URL, "http://")
	config := filepath.Join(b.dir, "home", ".config", "containers")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "registries.conf"), fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", name), 0o600); err != nil {
		t.Fatal(err)
	}
	b.startUser(t, name)
	b.api.PutPod(t, clusterPod("puller", func(p *corev1.Pod) {
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = name+"/image:1", corev1.PullAlways
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	}))
	b.waitFor(t, "the pull fails", func() bool {
		st := b.api.Pod("puller").Status.ContainerStatuses
		return len(st) == 1 && st[0].State.Waiting != nil && strings.Contains(st[0].State.Waiting.Reason, "Pull")
	})
	mu.Lock()
	defer mu.Unlock()
	if logins != 0 {
		t.Error("the user's login was used")
	}
}

// TestClusterHasObjectsOfTheSameName: pods of the cluster have the cluster's objects, and the user's pods the user's,
// whatever their names. A claim is the volume to which the API server has bound it.
func TestClusterHasObjectsOfTheSameName(t *testing.T) {
	b := startNode(t)
	b.startUser(t, "registry.test")
	if err := os.Mkdir(filepath.Join(b.dir, "cluster"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "cluster", "file"), []byte("file-of-the-cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "own", Namespace: "default", UID: "00000000-0000-0000-0000-0000000000aa"}
	b.api.Put(t, "/api/v1/namespaces/default/configmaps/own", &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "configmap-of-the-cluster"}})
	b.api.Put(t, "/api/v1/namespaces/default/secrets/own", &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"key2": []byte("secret-of-the-cluster")}})
	b.api.Put(t, "/api/v1/namespaces/default/persistentvolumeclaims/own", &corev1.PersistentVolumeClaim{
		ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	b.api.Put(t, "/api/v1/persistentvolumes/disk", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "disk"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(b.dir, "cluster")}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "own", UID: meta.UID},
	}})
	b.api.PutPod(t, clusterPod("web", func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}},
		}
		mount(p, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "own"}})
	}))
	b.waitFor(t, "the pod ends", func() bool { return b.api.Pod("web").Status.Phase == corev1.PodSucceeded })
	log := b.must(t, "logs", "web")
	for _, want := range []string{"configmap-of-the-cluster", "secret-of-the-cluster", "file-of-the-cluster"} {
		if !strings.Contains(log, want) {
			t.Errorf("the pod does not have %s:\n%s", want, log)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "cluster", "file")); err != nil || string(text) != "written\n" {
		t.Errorf("the volume has %q, %v", text, err)
	}
	if out := b.must(t, "exec", "user", "--", "sh", "-c", "cat /own/file; echo $KEY"); out != "secret-of-the-user\nsecret-of-the-user\n" {
		t.Errorf("the user's pod has %q", out)
	}
	if out := b.must(t, "get", "configmap", "own", "-o", "jsonpath={.data.key}"); strings.TrimSpace(out) != "secret-of-the-user" {
		t.Errorf("the user's ConfigMap has %q", out)
	}
}
