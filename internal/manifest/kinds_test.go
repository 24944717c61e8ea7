package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
)

const controller = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: r}\nspec:\n  replicas: 2\n  template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: i}]}}\n"

// TestReplicationController: its selector and its labels are the template's unless they are given
// (SetDefaults_ReplicationController and ValidateReplicationController of Kubernetes).
func TestReplicationController(t *testing.T) {
	o := load(t, controller)
	object, err := conversion.WorkloadToKubernetes(o.Stored)
	if err != nil {
		t.Fatal(err)
	}
	r := object.(*corev1.ReplicationController)
	if r.Spec.Selector["app"] != "w" || r.Labels["app"] != "w" || *r.Spec.Replicas != 2 || r.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways || r.Kind != "ReplicationController" {
		t.Errorf("%+v", r)
	}
	spec, err := workloads.NewSpec(o.Stored)
	if err != nil || spec.Replicas != 2 || spec.Kind != pod.KindReplication {
		t.Errorf("%+v %v", spec, err)
	}
	for change, want := range map[string]string{
		"replicas: -1":                                          "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
		"replicas: 1\n  selector: {app: other}":                 "spec.template.metadata.labels: Invalid value: {\"app\":\"w\"}: `selector` does not match template `labels`",
		"replicas: 1\n  strategy: {}":                           "spec.strategy: unknown field",
		"template: {spec: {containers: [{name: c, image: i}]}}": "spec.selector: Required value",
	} {
		text := strings.Replace(controller, "replicas: 2", change, 1)
		if strings.HasPrefix(change, "template") {
			text, _, _ = strings.Cut(text, "\n  template: {metadata")
		}
		if got := strings.Join(mistakes(text), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", change, got, want)
		}
	}
	if got := strings.Join(mistakes("apiVersion: v1\nkind: ReplicationController\nmetadata: {name: r}\nspec: {replicas: 1}\n"), "\n"); !strings.Contains(got, "spec.template.spec.containers: Required value") {
		t.Error(got)
	}
}

// TestEndpoints: addresses of Endpoints and EndpointSlices in the stored form, and mistakes in them.
func TestEndpoints(t *testing.T) {
	const (
		endpoints = "apiVersion: v1\nkind: Endpoints\nmetadata: {name: db}\nsubsets:\n"
		slice     = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: db-1, labels: {kubernetes.io/service-name: db}}\naddressType: IPv4\n"
	)
	tcp := []pod.EndpointPort{{Name: "sql", Protocol: "TCP", Port: 5432}}
	for text, want := range map[string]*pod.Endpoints{
		endpoints + "- {addresses: [{ip: 192.0.2.1}, {ip: 'fd00::1', hostname: a}], notReadyAddresses: [{ip: 192.0.2.2}], ports: [{name: sql, port: 5432}]}": {
			Service: "db", List: []pod.ServiceEndpoint{{Address: "192.0.2.1", Ports: tcp}, {Address: "fd00::1", Hostname: "a", Ports: tcp}, {Address: "192.0.2.2", NotReady: true, Ports: tcp}}},
		slice + "endpoints: [{addresses: [192.0.2.1, 192.0.2.9]}, {addresses: [192.0.2.2], conditions: {ready: false}}, {addresses: [192.0.2.3], hostname: c, conditions: {ready: true}}]\nports: [{name: sql, port: 5432}]": {
			Service: "db", List: []pod.ServiceEndpoint{{Address: "192.0.2.1", Ports: tcp}, {Address: "192.0.2.2", NotReady: true, Ports: tcp}, {Address: "192.0.2.3", Hostname: "c", Ports: tcp}}},
	} {
		if diff := cmp.Diff(want, load(t, text).Stored.Endpoints); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		endpoints + "- {ports: [{port: 80}]}":                                                                    "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
		endpoints + "- {addresses: [{ip: 127.0.0.1}]}":                                                           "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
		endpoints + "- {addresses: [{ip: 169.254.1.2}]}":                                                         "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
		endpoints + "- {addresses: [{ip: example.org}]}":                                                         "subsets[0].addresses[0].ip: Invalid value: \"example.org\"",
		endpoints + "- {addresses: [{ip: 192.0.2.1}], ports: [{port: 80}, {port: 81}]}":                          "subsets[0].ports[0].name: Required value",
		endpoints + "- {addresses: [{ip: 192.0.2.1}], ports: [{port: 0}]}":                                       "subsets[0].ports[0].port: Invalid value: 0",
		endpoints + "- {addresses: [{ip: 192.0.2.1}], ports: [{port: 1, protocol: SCTP}]}":                       "\"SCTP\" is not supported yet, only TCP, UDP",
		slice + "endpoints: [{addresses: ['fd00::1']}]\nports: [{port: 80}]":                                     "endpoints[0].addresses[0]: Invalid value: \"fd00::1\": must be an address of the type IPv4",
		slice + "endpoints: [{addresses: []}]\nports: [{port: 80}]":                                              "endpoints[0].addresses: Required value: must contain at least 1 address",
		slice + "endpoints: [{addresses: [192.0.2.1]}]\nports: [{name: a}]":                                      "ports[0].port: Required value",
		strings.Replace(slice, "IPv4", "FQDN", 1) + "endpoints: []":                                              "\"FQDN\" is not supported yet, only IPv4, IPv6",
		strings.Replace(slice, ", labels: {kubernetes.io/service-name: db}", "", 1) + "endpoints: []\nports: []": "metadata.labels[kubernetes.io/service-name]: Required value",
	} {
		if got := strings.Join(mistakes(text), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
