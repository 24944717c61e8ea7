package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metricsServerManifest is the manifest of podrun cluster create --metrics-server.
const metricsServerManifest = "../../internal/node/controlplane/metrics-server.yaml"

// importMetricsServer imports an image of metrics-server by the name that its manifest has.
func (n *node) importMetricsServer(t *testing.T, programs string) {
	t.Helper()
	name := regexp.MustCompile(`image: (\S+)`).FindStringSubmatch(readFile(t, metricsServerManifest))[1]
	n.importProgram(t, filepath.Join(programs, "metrics-server"), name, "")
}

// metricsService leads to metrics-server, which runs on the host: its manifests have a Deployment.
const metricsService = `
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics-server, namespace: kube-system, labels: {kubernetes.io/service-name: metrics-server}}
addressType: IPv4
ports: [{name: https, port: 4443}]
endpoints: [{addresses: [%s]}]
`

// startMetricsServer starts metrics-server with the permissions of its manifests. It verifies the certificates of nodes,
// so those that they have requested are approved.
func (c *controlPlane) startMetricsServer(t *testing.T) {
	t.Helper()
	c.kubectl(t, "apply", "-f", filepath.Join(c.programs, "metrics-server.yaml"))
	c.apply(t, fmt.Sprintf(metricsService, c.address))
	token := strings.TrimSpace(c.kubectl(t, "create", "token", "metrics-server", "-n", "kube-system"))
	config := c.file("metrics-server.kubeconfig")
	writeFile(t, config, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: user, user: {token: %q}}]
contexts: [{name: context, context: {cluster: cluster, user: user}}]
current-context: context
`, c.server(), c.authority(), token))
	c.waitFor(t, "the node requests a certificate", func() bool {
		request := c.kubectl(t, "get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kubelet-serving", "-o", "name")
		return request != "" && c.kubectlCommand("certificate", "approve", strings.TrimSpace(request)).Run() == nil
	})
	startProcess(t, c.program(filepath.Join(c.programs, "metrics-server"), "--bind-address", c.address, "--secure-port", "4443", "--cert-dir", c.dir,
		"--kubeconfig", config, "--authentication-kubeconfig", config, "--authorization-kubeconfig", config,
		"--kubelet-use-node-status-port", "--kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname", "--kubelet-certificate-authority", c.authority(),
		"--metric-resolution", "10s", "--kubelet-request-timeout", "9s"), c.file("metrics-server.log"))
}

// testTop: kubectl top prints what the node and its pods use.
func testTop(t *testing.T, c *controlPlane) {
	for what, want := range map[string]string{
		"nodes": `(?m)^attic +[1-9]\d*m +\d+% +[1-9]\d*Mi +\d+% *$`,
		"pods":  `(?m)^web-\S+ +\d+m +\d+Mi *\nweb-\S+ +\d+m +\d+Mi *$`,
	} {
		var got []byte
		c.waitFor(t, "kubectl top "+what, func() (ok bool) {
			got, _ = c.kubectlCommand("top", what).CombinedOutput()
			return regexp.MustCompile(want).Match(got)
		})
		t.Logf("kubectl top %s\n%s", what, got)
	}
}

// testMetrics: the metrics server of a cluster gets what it reads.
func testMetrics(t *testing.T, c *controlPlane) {
	proxy := func(path string) string { return c.kubectl(t, "get", "--raw", "/api/v1/nodes/attic/proxy/"+path) }
	// The API server deletes a pod without a grace period at once; the node ends it later.
	c.waitFor(t, "the pods that are deleted have ended", func() bool { return strings.Contains(proxy("metrics"), "\nkubelet_running_pods 2\n") })
	for path, series := range map[string][]string{
		"metrics/resource": {"\nnode_cpu_usage_seconds_total ", "\nnode_memory_working_set_bytes ", "\ncontainer_start_time_seconds{container=\"main\",namespace=\"default\",pod=\"web-", "\nresource_scrape_error 0\n"},
		"metrics/cadvisor": {"\ncontainer_fs_limit_bytes{container=\"\",device="},
		"metrics":          {"\nkubelet_node_name{node=\"attic\"} 1\n", "\nkubelet_pod_start_duration_seconds_count "},
		"metrics/probes":   {"\nprober_probe_total{container=\"main\",namespace=\"default\",pod=\"web-"},
		"logs/":            {"\n<pre>\n"},
	} {
		text := proxy(path)
		for _, want := range series {
			if !strings.Contains("\n"+text, want) {
				t.Errorf("%s: there is no %q in\n%s", path, want, text)
			}
		}
	}
	var summary struct {
		Node struct{ NodeName string }
		Pods []struct {
			PodRef     struct{ Name, UID string }
			Containers []struct {
				Name   string
				Memory struct{ WorkingSetBytes int64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(proxy("stats/summary")), &summary); err != nil {
		t.Fatal(err)
	}
	if p := summary.Pods; summary.Node.NodeName != "attic" || len(p) != 2 || len(p[0].Containers) != 1 || p[0].PodRef.UID == "" || p[0].Containers[0].Memory.WorkingSetBytes == 0 {
		t.Errorf("/stats/summary: %+v", summary)
	}
}
