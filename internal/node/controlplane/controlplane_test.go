package controlplane

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/node/kubeapi"
)

// testCluster is a cluster whose paths need quotes.
func testCluster(t *testing.T) Cluster {
	return Cluster{Name: "dev", Version: "1.36.3", Dir: filepath.Join(t.TempDir(), `a: "b", {c}`), Podrun: `/opt/a "b"/podrun`, Images: "/images", Registries: Registries{System: "/etc/containers", User: "/home/me/.config/containers"}, APIAddress: "127.0.0.1", APIPort: 40000, NodeCount: 2,
		Ports: []Port{{HostAddress: "127.0.0.1", Host: 8080, Node: 30080, Protocol: "TCP"}}}
}

// load decodes the manifest of a cluster.
func load(t *testing.T, c Cluster) (claims []string, pod *corev1.Pod) {
	t.Helper()
	text, err := c.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Load("pod.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, o := range objects {
		if o.Pod != nil {
			pod = o.Pod
		} else {
			claims = append(claims, o.Name())
		}
	}
	return claims, pod
}

// TestManifest: the manifest is one that podrun runs, with the cluster's names, paths and ports.
func TestManifest(t *testing.T) {
	c := testCluster(t)
	claims, p := load(t, c)
	if want := []string{"podrun-dev-etcd", "podrun-dev-node-1", "podrun-dev-node-2"}; !slices.Equal(claims, want) {
		t.Errorf("claims %q, want %q", claims, want)
	}
	containers := map[string]corev1.Container{}
	for _, container := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		containers[container.Name] = container
	}
	if got, want := slices.Sorted(maps.Keys(containers)), []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "node-1", "node-2"}; p.Name != "podrun-dev" || !slices.Equal(got, want) {
		t.Errorf("pod %s has the containers %q, want %q", p.Name, got, want)
	}
	node := containers["node-2"]
	for _, want := range []string{"--node-name=dev-2", "--node-ip=10.87.0.2", "--kubeconfig=/etc/kubernetes/node-2.conf", "--pod-network=routed"} {
		if !slices.Contains(node.Command, want) {
			t.Errorf("node-2 runs %q, without %s", node.Command, want)
		}
	}
	if ports := containers["node-1"].Ports; len(ports) != 1 || ports[0].HostPort != 8080 || ports[0].ContainerPort != 30080 || len(node.Ports) != 0 {
		t.Errorf("node-1 has the ports %v, node-2 %v", ports, node.Ports)
	}
	mounts := map[string]string{}
	for _, m := range node.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	if mounts["system-registries"] != "/etc/containers" || mounts["user-registries"] != "/root/.config/containers" {
		t.Errorf("node-2 has the mounts %q", mounts)
	}
	paths := map[string]string{}
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil {
			paths[v.Name] = v.HostPath.Path
		}
	}
	if paths["podrun"] != c.Podrun || paths["kubernetes"] != c.KubernetesDir() || paths["system-registries"] != c.Registries.System || paths["user-registries"] != c.Registries.User {
		t.Errorf("paths %q", paths)
	}
}

// TestWithoutRegistries: a host without settings of registries has no volumes of them.
func TestWithoutRegistries(t *testing.T) {
	c := testCluster(t)
	c.Registries = Registries{}
	if text, err := c.Manifest(); err != nil || strings.Contains(string(text), "registries") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestNoNodes: a control plane without nodes of its own advertises the address of the host, and mounts nothing that only nodes need.
func TestNoNodes(t *testing.T) {
	c := testCluster(t)
	c.APIAddress, c.APIPort, c.NodeCount, c.Ports = "192.0.2.1", APIPort, 0, nil
	claims, p := load(t, c)
	if want := []string{"podrun-dev-etcd"}; !slices.Equal(claims, want) || len(p.Spec.Containers) != 3 || len(p.Spec.Volumes) != 2 {
		t.Errorf("claims %q, %d containers, the volumes %v", claims, len(p.Spec.Containers), p.Spec.Volumes)
	}
	for _, want := range []string{"--advertise-address=192.0.2.1", "--enable-aggregator-routing=true"} {
		if !slices.Contains(p.Spec.Containers[0].Command, want) {
			t.Errorf("the API server runs %q, without %s", p.Spec.Containers[0].Command, want)
		}
	}
	read := Cluster{Name: "dev", NodeCount: 1}
	if err := read.ReadPod(p); err != nil || read.NodeCount != 0 || read.Server() != "https://192.0.2.1:6443" {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestNames: names that YAML takes for other values are names of clusters.
func TestNames(t *testing.T) {
	for _, name := range []string{"true", "1", "null"} {
		c := testCluster(t)
		c.Name = name
		if _, p := load(t, c); p.Labels["podrun.dev/cluster"] != name {
			t.Errorf("the label of cluster %s is %q", name, p.Labels["podrun.dev/cluster"])
		}
	}
}

// TestReadPod: a changed manifest says how many nodes there are, and where the API server is.
func TestReadPod(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(p *corev1.Pod)
		want   string // of the error
	}{
		"unchanged": {func(*corev1.Pod) {}, ""},
		"no first node": {func(p *corev1.Pod) {
			p.Spec.Containers = slices.DeleteFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "node-1" })
		}, "spec.containers has node-2, but no node-1"},
		"a misnamed node": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "node3"})
		}, "spec.containers has node3, but no node-3"},
		"a container that is no node": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "node-exporter"})
		}, ""},
		"too many nodes": {func(p *corev1.Pod) {
			for i := range MaxNodes {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: Node{Number: i + 3}.Container()})
			}
		}, "more than 32 nodes"},
		"no port":      {func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil }, "the container kube-apiserver has no hostPort"},
		"another name": {func(p *corev1.Pod) { p.Name = "web" }, "metadata.name must be podrun-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := load(t, testCluster(t))
			tt.change(p)
			c := Cluster{Name: "dev", NodeCount: 1, APIPort: 1}
			switch err := c.ReadPod(p); {
			case tt.want == "" && (err != nil || c.Version != "1.36.3" || c.NodeCount != 2 || c.APIPort != 40000 || c.APIAddress != "127.0.0.1"):
				t.Errorf("%+v, %v", c, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{"1.36.3": "1.36.3", "v1.34.0": "1.34.0", "1.33.1": "", "1.36": "", "2.0.0": "", "1.x.0": "", "latest": "", "1.36.": "", "1.36.x": "", "1.+36.0": "", "1.36.3\n": ""} {
		got, err := ParseVersion(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, valid := range map[string]bool{"dev": true, "a-1": true, "": false, "Dev": false, "a.b": false, strings.Repeat("a", 41): false} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// files returns the content of the cluster's files.
func files(t *testing.T, c Cluster) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(c.KubernetesDir(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(c.KubernetesDir(), path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCredentials: the certificates are signed by their authorities for what they are for. Written again they stay; what ends
// soon, or lacks a name, is made again, and the authorities never are.
func TestCredentials(t *testing.T) {
	c, now := testCluster(t), time.Now()
	if err := c.WriteCredentials(now); err != nil {
		t.Fatal(err)
	}
	first := files(t, c)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(first["pki/ca.crt"]))
	for name, usage := range map[string]x509.ExtKeyUsage{"pki/apiserver.crt": x509.ExtKeyUsageServerAuth, "pki/apiserver-kubelet-client.crt": x509.ExtKeyUsageClientAuth} {
		block, _ := pem.Decode([]byte(first[name]))
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, host := range []string{"127.0.0.1", "10.96.0.1", "10.87.0.1", "kubernetes.default.svc"} {
			if err := certificate.VerifyHostname(host); (err == nil) != (usage == x509.ExtKeyUsageServerAuth) {
				t.Errorf("%s for %s: %v", name, host, err)
			}
		}
	}
	for name, server := range map[string]string{"admin": "https://127.0.0.1:40000", "scheduler": "https://127.0.0.1:6443", "node-2": "https://10.87.0.1:6443"} {
		config, err := kubeapi.LoadKubeconfig(filepath.Join(c.KubernetesDir(), name+".conf"))
		if err != nil || config.Server != server {
			t.Errorf("%s.conf: %v, %v", name, config, err)
		}
	}

	if err := c.WriteCredentials(now.Add(24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if again := files(t, c); !maps.Equal(again, first) {
		t.Error("files have changed after a day")
	}
	if err := c.WriteCredentials(now.Add(leafLife - renewBefore + time.Hour)); err != nil {
		t.Fatal(err)
	}
	for name, text := range files(t, c) {
		stays := strings.Contains(name, "ca.") || strings.Contains(name, "/sa.")
		if (text == first[name]) != stays {
			t.Errorf("%s stays: %t", name, !stays)
		}
	}
	c.APIAddress = "192.0.2.1"
	before := files(t, c)
	if err := c.WriteCredentials(now.Add(leafLife - renewBefore + time.Hour)); err != nil {
		t.Fatal(err)
	}
	var changed []string
	for name, text := range files(t, c) {
		if text != before[name] {
			changed = append(changed, name)
		}
	}
	if slices.Sort(changed); !slices.Equal(changed, []string{"admin.conf", "pki/apiserver.crt", "pki/apiserver.key"}) {
		t.Errorf("with another address %q have changed", changed)
	}
}

// TestDamagedCredentials: a damaged authority is an error that names its file; nothing replaces it.
func TestDamagedCredentials(t *testing.T) {
	c := testCluster(t)
	if err := c.WriteCredentials(time.Now()); err != nil {
		t.Fatal(err)
	}
	path, key := filepath.Join(c.KubernetesDir(), "pki", "ca.crt"), filepath.Join(c.KubernetesDir(), "pki", "ca.key")
	for _, damage := range []func() error{
		func() error { return os.Rename(key, key+".away") },
		func() error {
			return errors.Join(os.Rename(key+".away", key), os.WriteFile(path, []byte("rubbish"), 0o600))
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteCredentials(time.Now()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	}
}

// TestMetricsServerImage: the image that is listed is the one of the manifest.
func TestMetricsServerImage(t *testing.T) {
	if !strings.Contains(string(metricsServer), "image: "+metricsServerImage+"\n") || !slices.Contains(Cluster{Version: "1.36.3", MetricsServer: true}.AllImages(), metricsServerImage) {
		t.Errorf("%s is not listed, or not in the manifest", metricsServerImage)
	}
}

// TestAddons: each object is applied at the path of its kind.
func TestAddons(t *testing.T) {
	var paths []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o metav1.PartialObjectMetadata
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &o); err != nil || r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || !strings.HasSuffix(r.URL.Path, "/"+o.Name) {
			t.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, text)
		}
		paths = append(paths, strings.TrimSuffix(r.URL.Path, "/"+o.Name))
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	client, err := kubeapi.NewClient(&kubeapi.Config{Server: server.URL, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})})
	if err != nil {
		t.Fatal(err)
	}
	c := testCluster(t)
	c.MetricsServer = true
	if err := c.WriteCredentials(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.ApplyAddons(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	if got, want := slices.Compact(paths), []string{
		"/api/v1/namespaces/kube-public/configmaps", "/api/v1/namespaces/kube-system/serviceaccounts", "/api/v1/namespaces/kube-system/services", "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/apps/v1/namespaces/kube-system/deployments",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings", "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/roles",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
		"/apis/storage.k8s.io/v1/storageclasses",
	}; !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}
