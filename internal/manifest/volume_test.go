package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

// TestValidateVolumes has one line per rule. The document is a volume named v.
func TestValidateVolumes(t *testing.T) {
	long := strings.Repeat("n", 256)
	const at = "spec.volumes[0]."
	const mode = "must be a number between 0 and 0777 (octal), both inclusive"
	const name = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	for _, test := range []struct{ in, want string }{
		{"hostPath: {path: /a}, emptyDir: {}", "hostPath: Forbidden: may not specify more than 1 volume type"},
		{"secret: {secretName: s}, configMap: {name: c}", "configMap: Forbidden: may not specify more than 1 volume type"},
		{"emptyDir: {sizeLimit: -1}", "emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"},
		{"emptyDir: {mode: 1024}", "emptyDir.mode: Invalid value: 1024: must be a number between 0 and 01777 (octal), both inclusive"},
		{"emptyDir: {medium: Tape}", `emptyDir.medium: "Tape" is not supported yet, only Memory, HugePages, HugePages-2Mi, HugePages-1Gi, HugePages-64Ki, HugePages-32Mi (Memory: a tmpfs that the pod's containers share; HugePages: a hugetlbfs, only for root's pods, with a page size for which a container has a limit; default: disk)`},
		{"hostPath: {}", "hostPath.path: Required value"},
		{"hostPath: {path: /a/../b}", `hostPath.path: Invalid value: "/a/../b": must not contain '..'`},
		{"hostPath: {path: a}", `hostPath.path: Invalid value: "a": must be an absolute path`},
		{"hostPath: {path: \"/a\\nb\"}", `hostPath.path: Invalid value: "/a\nb": must not contain control characters`},
		{"hostPath: {path: /a, type: Pipe}", `hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`},
		{"configMap: {}", "configMap.name: Required value"},
		{"configMap: {name: ../x}", `configMap.name: Invalid value: "../x": ` + name},
		{"configMap: {name: c, defaultMode: 512}", "configMap.defaultMode: Invalid value: 512: " + mode},
		{"configMap: {name: c, defaultUser: -1}", "configMap.defaultUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"configMap: {name: c, items: [{}]}", "configMap.items[0].key: Required value\n" + at + "configMap.items[0].path: Required value"},
		{"secret: {secretName: s, items: [{key: k, path: /etc}]}", `secret.items[0].path: Invalid value: "/etc": must be a relative path`},
		{"secret: {secretName: s, items: [{key: k, path: a/../../b}]}", `secret.items[0].path: Invalid value: "a/../../b": must not contain '..'`},
		{"secret: {secretName: s, items: [{key: k, path: ..data}]}", `secret.items[0].path: Invalid value: "..data": must not start with '..'`},
		{"secret: {secretName: s, items: [{key: k, path: \"a\\0b\"}]}", `secret.items[0].path: Invalid value: "a\x00b": must not contain a NUL byte`},
		{"secret: {secretName: s, items: [{key: k, path: .}]}", `secret.items[0].path: Invalid value: ".": is not a valid file path`},
		{"secret: {secretName: s, items: [{key: k, path: " + long + "}]}", `secret.items[0].path: Invalid value: "` + long[:60] + `…": is not a valid file path`},
		{"secret: {secretName: s, items: [{key: k, path: a}, {key: l, path: ./a}]}", `secret.items[1].path: Invalid value: "./a": conflicting duplicate paths`},
		{"secret: {secretName: s, items: [{key: k, path: a/b}, {key: l, path: a}]}", `secret.items[1].path: Invalid value: "a": conflicts with the path a/b: one is a directory of the other`},
		{"secret: {secretName: s, items: [{key: k, path: a, mode: 512}]}", "secret.items[0].mode: Invalid value: 512: " + mode},
		{"downwardAPI: {items: [{path: a}]}", "downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required"},
		{"downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}}]}", `downwardAPI.items[0].fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['KEY']", "metadata.annotations['KEY']"`},
		{"downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.cpu}}]}", "downwardAPI.items[0].resourceFieldRef.containerName: Required value"},
		{"downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {containerName: c, resource: limits.cpu}}]}", `downwardAPI.items[0]: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously`},
		{"projected: {sources: [{secret: {name: s}, configMap: {name: c}}]}", "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"},
		{"projected: {sources: [{secret: {name: s, items: [{key: k, path: a}]}}, {configMap: {name: c, items: [{key: k, path: a}]}}]}", `projected.sources[1].configMap.items[0].path: Invalid value: "a": conflicting duplicate paths`},
		{"projected: {sources: [{serviceAccountToken: {path: token}}]}", "projected.sources[0].serviceAccountToken: not supported yet: there is no API server, so no account and no token: keep one for another service in a Secret"},
		{"persistentVolumeClaim: {}", "persistentVolumeClaim.claimName: Required value"},
		{"persistentVolumeClaim: {claimName: a/b}", `persistentVolumeClaim.claimName: Invalid value: "a/b": ` + name},
		{"ephemeral: {}", "ephemeral.volumeClaimTemplate: Required value"},
		{"ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}", `ephemeral.volumeClaimTemplate.spec.volumeMode: "Block" is not supported yet, only Filesystem (no block devices)`},
		{"image: {}", "image.reference: Required value"},
		{"image: {reference: i, pullPolicy: Sometimes}", `image.pullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`},
		{"nfs: {server: s, path: /}", "nfs: not supported yet: needs a storage driver: mount it on the host and use hostPath, or a persistentVolumeClaim, which is a directory"},
		{"gitRepo: {repository: r}", "gitRepo: not supported yet: clone in an init container, into an emptyDir"},
		{"flexVolume: {driver: d}", "flexVolume: not supported yet: a volume of an old cloud or storage plug-in: mount it on the host and use hostPath, or a persistentVolumeClaim, which is a directory"},
	} {
		got := messagesOf(mistakes(podYAML("{containers: [{name: c, image: i}], volumes: [{name: v, " + test.in + "}]}")))
		if want := at + test.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", test.in, got, want)
		}
	}
}

// TestValidateMounts has one line per rule. The document is a mount of a volume.
func TestValidateMounts(t *testing.T) {
	const at = "spec.containers[0].volumeMounts[0]."
	for _, test := range []struct{ in, want string }{
		{"subPath: /a", `subPath: Invalid value: "/a": must be a relative path`},
		{"subPath: a/../..", `subPath: Invalid value: "a/../..": must not contain '..'`},
		{"subPathExpr: $(A)/..", `subPathExpr: Invalid value: "$(A)/..": must not contain '..'`},
		{"subPath: a, subPathExpr: b", `subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive`},
		{"mountPropagation: Rshared", `mountPropagation: Unsupported value: "Rshared": supported values: "Bidirectional", "HostToContainer", "None"`},
		{"mountPropagation: Bidirectional", "mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"},
		{"recursiveReadOnly: Enabled", "recursiveReadOnly: Forbidden: may only be specified when readOnly is true"},
		{"readOnly: true, mountPropagation: HostToContainer, recursiveReadOnly: IfPossible", "recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified"},
		{"readOnly: true, recursiveReadOnly: Always", `recursiveReadOnly: Unsupported value: "Always": supported values: "Disabled", "Enabled", "IfPossible"`},
		{"bindMountOptions: [exec]", `bindMountOptions[0]: Unsupported value: "exec": supported values: "nodev", "noexec", "nosuid"`},
		{"bindMountOptions: [noexec, noexec]", `bindMountOptions[1]: Duplicate value: "noexec"`},
		{"name: i, bindMountOptions: [noexec]", `bindMountOptions: Invalid value: ["noexec"]: bindMountOptions may not be used with image volumes`},
		{"name: '..'", `name: Not found: ".."`},
	} {
		in := test.in
		if !strings.Contains(in, "name:") {
			in = "name: v, " + in
		}
		got := messagesOf(mistakes(podYAML("{containers: [{name: c, image: i, volumeMounts: [{mountPath: /v, " + in + "}]}], volumes: [{name: v}, {name: i, image: {reference: i}}]}")))
		if want := at + test.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", test.in, got, want)
		}
	}
}

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
		plan, err := Build(o, map[string]pod.Image{"c": {}, "volume/v": {Layers: []string{"/l"}}}, BuildOptions{UID: "u", NodeMemory: 1 << 30})
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
		got := messagesOf(mistakes(podYAML("{containers: [{name: c, image: i}], " + in + "}")))
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
}

// messagesOf returns the messages of mistakes, without their positions in the file.
func messagesOf(mistakes []string) string {
	var lines []string
	for _, m := range mistakes {
		_, text, _ := strings.Cut(m, ": ")
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
