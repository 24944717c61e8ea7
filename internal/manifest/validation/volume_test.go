package validation_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testmanifest"
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
		got := testmanifest.Messages(mistakes(podYAML("{containers: [{name: c, image: i}], volumes: [{name: v, " + test.in + "}]}")))
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
		got := testmanifest.Messages(mistakes(podYAML("{containers: [{name: c, image: i, volumeMounts: [{mountPath: /v, " + in + "}]}], volumes: [{name: v}, {name: i, image: {reference: i}}]}")))
		if want := at + test.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", test.in, got, want)
		}
	}
}
