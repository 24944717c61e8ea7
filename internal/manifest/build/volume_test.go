package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testmanifest"
)

// TestBuildVolumes has one line per kind.
func TestBuildVolumes(t *testing.T) {
	for _, test := range []struct {
		in   string
		want pod.Volume
	}{
		{"emptyDir: {}", pod.Volume{Kind: pod.EmptyDir}},
		{"emptyDir: {mode: 0750}", pod.Volume{Kind: pod.EmptyDir, Mode: 0o750}},
		{"emptyDir: {medium: Memory, sizeLimit: 1Gi}", pod.Volume{Kind: pod.EmptyDirMemory, SizeLimit: 64 << 20}}, // the pod's limit
		{"emptyDir: {medium: Memory, sizeLimit: 1Mi}", pod.Volume{Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}},
		{"hostPath: {path: /a//b/, type: File}", pod.Volume{Kind: pod.HostPath, Path: "/a/b", PathType: "File"}},
		{"hostPath: {path: /a}", pod.Volume{Kind: pod.HostPath, Path: "/a"}},
		{"persistentVolumeClaim: {claimName: data, readOnly: true}", pod.Volume{Kind: pod.ClaimVolume, Claim: "data", ReadOnly: true}},
		{"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}", pod.Volume{Kind: pod.Ephemeral}},
		{"image: {reference: 'data:1'}", pod.Volume{Kind: pod.ImageVolume, Image: "data:1", Layers: []string{"/l"}}},
		{"configMap: {name: web}", pod.Volume{Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644}}}},
		{"secret: {secretName: key, optional: true, defaultMode: 0400, defaultUser: 7, items: [{key: a, path: b//c}, {key: d, path: d, mode: 0440, user: 8}]}",
			pod.Volume{Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key", Optional: true, Mode: 0o400, User: 7,
				Items: []pod.FileItem{{Key: "a", Path: "b/c", Mode: 0o400, User: 7}, {Key: "d", Path: "d", Mode: 0o440, User: 8}}}}}},
		{`configMap: {name: web, items: [{key: k, path: "a\nb\x7f/..c\t"}]}`, pod.Volume{Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644,
			Items: []pod.FileItem{{Key: "k", Path: "a\nb\x7f/..c\t", Mode: 0o644}}}}}},
		{`downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: one, fieldRef: {fieldPath: "metadata.annotations['a/b']"}}, {path: cpu, mode: 0400, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}, {path: mem, resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}}]}`,
			pod.Volume{Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Mode: 0o644, Items: []pod.FileItem{
				{Text: "app=\"web\"\ntier=\"1\"", Path: "labels", Mode: 0o644}, {Text: "x\ny", Path: "one", Mode: 0o644}, {Text: "250", Path: "cpu", Mode: 0o400}, {Text: "64", Path: "mem", Mode: 0o644}}}}}},
		{"projected: {defaultMode: 0440, sources: [{configMap: {name: web}}, {secret: {name: key, items: [{key: k, path: p}]}}, {downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}}]}",
			pod.Volume{Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o440},
				{Kind: pod.FromSecret, Name: "key", Mode: 0o440, Items: []pod.FileItem{{Key: "k", Path: "p", Mode: 0o440}}},
				{Kind: pod.FromPod, Mode: 0o440, Items: []pod.FileItem{{Text: "default", Path: "ns", Mode: 0o440}}}}}},
	} {
		text := strings.Replace(podYAML("{automountServiceAccountToken: false, containers: [{name: c, image: i, command: [x], resources: {limits: {cpu: 250m, memory: 64Mi}}}], volumes: [{name: v, "+test.in+"}]}"),
			"name: p", `name: p, labels: {tier: "1", app: web}, annotations: {a/b: "x\ny"}`, 1)
		o := load(t, text)
		plan, err := build.Plan(o, map[string]pod.Image{"c": {}, "volume/v": {Layers: []string{"/l"}}}, build.Options{UID: "u", NodeMemory: 1 << 30})
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		test.want.Name = "v"
		if diff := cmp.Diff([]pod.Volume{test.want}, plan.Volumes); diff != "" {
			t.Errorf("%s: %s", test.in, diff)
		}
	}
}

// TestAllocatable: what pods may use is the limit of a container without one.
func TestAllocatable(t *testing.T) {
	o := load(t, podYAML(`{volumes: [{name: v, emptyDir: {medium: Memory}}], containers: [{name: c, image: i, command: [x], env: [
		{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}},
		{name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory}}},
		{name: STORAGE, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage}}}]}]}`))
	allocatable := corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "ephemeral-storage": resource.MustParse("5G")}
	plan, err := build.Plan(o, map[string]pod.Image{"c": {}}, build.Options{NodeMemory: 2 << 30, Allocatable: allocatable})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range plan.Containers[0].Vars {
		got[v.Name] = *v.From.Text
	}
	want := map[string]string{"CPU": "1500", "MEMORY": "1073741824", "STORAGE": "5000000000"}
	if diff := cmp.Diff(want, got); diff != "" || plan.Volumes[0].SizeLimit != 1<<30 {
		t.Errorf("%s; the volume has %d bytes", diff, plan.Volumes[0].SizeLimit)
	}
}

func TestBuildMounts(t *testing.T) {
	plan := mustBuild(t, podYAML(`{securityContext: {fsGroup: 7, supplementalGroups: [6], fsGroupChangePolicy: OnRootMismatch}, volumes: [{name: v}, {name: cfg, configMap: {name: web}}], containers: [{name: c, image: i, command: [x], env: [{name: A, value: a}], volumeMounts: [
		{name: v, mountPath: /v, subPathExpr: $(A)/x, readOnly: true, recursiveReadOnly: IfPossible, bindMountOptions: [noexec]},
		{name: v, mountPath: /w, subPath: s, mountPropagation: HostToContainer, recursiveReadOnly: Disabled},
		{name: cfg, mountPath: /cfg}, {name: v, mountPath: /cfg/in/here, mountPropagation: None}]}]}`), pod.Image{})
	want := []pod.Mount{
		{Volume: "cfg", Path: "/cfg"},
		{Volume: "v", Path: "/v", SubPathExpr: "$(A)/x", ReadOnly: true, Recursive: pod.RecursiveIfPossible, Options: []string{"noexec"}},
		{Volume: "v", Path: "/w", SubPath: "s", Propagation: pod.HostToContainer},
		{Volume: "v", Path: "/cfg/in/here"},
		{Volume: "kube-api-access", Path: accountDir, ReadOnly: true},
	}
	if diff := cmp.Diff(want, plan.Containers[0].Mounts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"in/here"}, plan.Volumes[1].Dirs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&pod.Group{ID: 7, OnRootMismatch: true}, plan.FSGroup); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{6, 7}, plan.Containers[0].SupplementalGroups); diff != "" {
		t.Error(diff)
	}
}

// accountDir has the files that TestAccount checks: every container finds its namespace, unless the manifest
// disables it or mounts something else there.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

func TestAccount(t *testing.T) {
	const mounted = "volumes: [{name: kube-api-access}], containers: [{name: c, image: i, command: [x], volumeMounts: [{name: kube-api-access, mountPath: " + accountDir + "/}]}, {name: d, image: i, command: [x]}]"
	plan := mustBuild(t, podYAML("{"+mounted+"}"), pod.Image{})
	if m := plan.Containers[0].Mounts; len(m) != 1 || m[0].Volume != "kube-api-access" {
		t.Errorf("its own volume is not there alone: %+v", m)
	}
	if m := plan.Containers[1].Mounts; len(m) != 1 || m[0].Volume != "kube-api-access-2" || m[0].Path != accountDir || !m[0].ReadOnly {
		t.Errorf("mounts %+v", m)
	}
	want := pod.Volume{Name: "kube-api-access-2", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Mode: 0o644, Items: []pod.FileItem{{Text: "default", Path: "namespace", Mode: 0o644}}}}}
	if diff := cmp.Diff(want, plan.Volumes[1]); diff != "" {
		t.Error(diff)
	}
	plan = mustBuild(t, podYAML("{automountServiceAccountToken: false, "+mounted+"}"), pod.Image{})
	if len(plan.Volumes) != 1 || len(plan.Containers[1].Mounts) != 0 {
		t.Errorf("it was not wanted: %+v", plan)
	}
}

func TestHostnameOverride(t *testing.T) {
	long := strings.Repeat("a", 62) + ".b"
	for in, want := range map[string]string{
		"hostnameOverride: a.b, hostname: h, subdomain: s": "a.b",
		"hostnameOverride: " + long:                        long[:62],
	} {
		plan := mustBuild(t, podYAML("{containers: [{name: c, image: i, command: [x]}], "+in+"}"), pod.Image{})
		if plan.Hostname != want || plan.KernelHostname() != want || plan.Domain() != "" {
			t.Errorf("%s: %q %q %q", in, plan.Hostname, plan.KernelHostname(), plan.Domain())
		}
	}
	for in, want := range map[string]string{
		"hostnameOverride: a, setHostnameAsFQDN: true": "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
		"hostnameOverride: " + strings.Repeat("a", 65): "spec.hostnameOverride: Too long: may not be more than 64 bytes",
		"hostnameOverride: A":                          `spec.hostnameOverride: Invalid value: "A": `,
		"hostname: a.b":                                `spec.hostname: Invalid value: "a.b": must not contain dots`,
	} {
		got := testmanifest.Messages(mistakes(podYAML("{containers: [{name: c, image: i}], " + in + "}")))
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
}
