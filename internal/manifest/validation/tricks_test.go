package validation_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestSysctlTricks: only the kubelet's safe sysctls are accepted, by their exact names and with
// numbers, with any use of separators, "=" and "+" (CVE-2022-0811).
func TestSysctlTricks(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i}]\n  securityContext: {sysctls: [%s]}\n"
	const unsafe, numbers = "is neither on the kubelet's list of safe sysctls nor known to be namespaced", "must be made of numbers"
	for _, c := range []struct{ name, value, want string }{
		{"kernel.shm_rmid_forced+kernel.core_pattern", "1", unsafe},
		{"kernel.shm_rmid_forced=1+kernel.core_pattern", "1", unsafe},
		{"kernel.shm_rmid_forced=1", "", unsafe},
		{"kernel.shm_rmid_forced ", "1", unsafe},
		{" kernel.shm_rmid_forced", "1", unsafe},
		{"kernel.shm_rmid_forced\\nkernel.core_pattern", "1", unsafe},
		{"kernel.shm_rmid_forced\\0", "1", unsafe},
		{"KERNEL.shm_rmid_forced", "1", unsafe},
		{"kernel..shm_rmid_forced", "1", unsafe},
		{"kernel/../kernel/core_pattern", "1", unsafe},
		{"net/ipv4/../../kernel/core_pattern", "1", unsafe},
		{"net.ipv4/tcp_syncookies", "1", unsafe},
		{"net/ipv4.tcp_syncookies", "1", unsafe},
		{"/net/ipv4/tcp_syncookies", "1", unsafe},
		{"../kernel/core_pattern", "1", unsafe},
		{"kernel.core_pattern", "1", unsafe},
		{"kernel.sysrq", "1", unsafe},
		{"kernel.msg*", "1", unsafe},
		{"kernel.domainname", "a", unsafe},
		{"kernel.shm*", "1", unsafe},
		{"fs.suid_dumpable", "2", unsafe},
		{"vm.overcommit_memory", "1", unsafe},
		{"user.max_user_namespaces", "1", unsafe},
		{"net.core.*", "1", unsafe},
		{"net/ipv4/conf/eth0.1/forwarding", "1", unsafe},
		{"net.ipv4.tcp_congestion_control", "bbr\\nx", "must not contain control characters"},
		{"", "1", "Required value"},
		{"kernel.shm_rmid_forced", "|/bin/sh", numbers},
		{"kernel.shm_rmid_forced", "1\\n", numbers},
		{"kernel.shm_rmid_forced", "1+kernel.core_pattern=1", numbers},
		{"kernel.shm_rmid_forced", "1", ""},
		{"kernel/shm_rmid_forced", "1", ""},
		{"net/ipv4/tcp_syncookies", "1", ""},
		{"net.ipv4.ping_group_range", "0 2147483647", ""},
		// Load accepts sysctls that a flag may permit.
		{"kernel.msgmax", "65536", ""},
		{"kernel.sem", "250\\t32000 32 128", ""},
		{"fs.mqueue.msg_max", "1", ""},
		{"net.core.somaxconn", "1", ""},
		{"net/ipv4/conf/all/forwarding", "1", ""},
		{"net.ipv4.tcp_congestion_control", "reno", ""},
	} {
		text := fmt.Sprintf(pod, `{name: "`+c.name+`", value: "`+c.value+`"}`)
		if reported := strings.Join(mistakes(text), "\n"); c.want == "" && reported != "" || !strings.Contains(reported, c.want) {
			t.Errorf("%q = %q: %q, want %q", c.name, c.value, reported, c.want)
		}
	}
	twice := fmt.Sprintf(pod, `{name: kernel.shm_rmid_forced, value: "1"}, {name: kernel/shm_rmid_forced, value: "0"}`)
	if reported := strings.Join(mistakes(twice), "\n"); !strings.Contains(reported, "Duplicate value") {
		t.Errorf("one of two names twice: %q", reported)
	}
}

// TestNamesAreNoPaths: every name that becomes part of a path is refused if the path would lead
// elsewhere, or the name is invalid or too long (CVE-2025-0750, CVE-2025-62725, CVE-2024-10220).
func TestNamesAreNoPaths(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	places := map[string]string{
		"pod":             "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers: [{name: c, image: i}]\n",
		"namespace":       "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: %s}\nspec:\n  containers: [{name: c, image: i}]\n",
		"container":       pod + "  containers: [{name: %s, image: i}]\n",
		"init container":  pod + "  initContainers: [{name: %s, image: i}]\n  containers: [{name: c, image: i}]\n",
		"volume":          pod + "  containers: [{name: c, image: i}]\n  volumes: [{name: %s, emptyDir: {}}]\n",
		"hostname":        pod + "  hostname: %s\n  containers: [{name: c, image: i}]\n",
		"subdomain":       pod + "  subdomain: %s\n  containers: [{name: c, image: i}]\n",
		"configMap":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n",
		"its namespace":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %s}\n",
		"its key":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {%s: x}\n",
		"its binary key":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nbinaryData: {%s: eA==}\n",
		"secret":          "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\n",
		"its key, too":    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {%s: x}\n",
		"claim":           "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
		"service":         "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n",
		"claim to mount":  pod + "  containers: [{name: c, image: i}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]\n",
		"secret to mount": pod + "  containers: [{name: c, image: i}]\n  volumes: [{name: v, secret: {secretName: %s}}]\n",
		"file to mount":   pod + "  containers: [{name: c, image: i}]\n  volumes: [{name: v, configMap: {name: a, items: [{key: k, path: %s}]}}]\n",
		"file of the pod": pod + "  containers: [{name: c, image: i}]\n  volumes: [{name: v, downwardAPI: {items: [{path: %s, fieldRef: {fieldPath: metadata.name}}]}}]\n",
	}
	names := map[string]string{
		"up": `".."`, "up and away": `"../../x"`, "absolute": `"/etc/passwd"`, "inner up": `"a/../../b"`, "NUL": `"a\0b"`,
		"newline": `"a\nb"`, "254 characters": `"` + strings.Repeat("a", 254) + `"`, "empty": `""`, "dot": `"."`, "slash": `"a/b"`,
	}
	fine := map[string]bool{ // a name of a file may have control characters
		"file to mount newline": true, "file of the pod newline": true,
		// files of volumes have paths, below the volume; empty values may be absent
		"file to mount slash": true, "file of the pod slash": true, "file to mount 254 characters": true, "file of the pod 254 characters": true,
		"namespace empty": true, "its namespace empty": true, "hostname empty": true, "subdomain empty": true,
	}
	for place, text := range places {
		if reported := mistakes(fmt.Sprintf(text, "abc")); reported != nil {
			t.Errorf("%s: a good name: %q", place, reported)
		}
		for kind, name := range names {
			if reported := mistakes(fmt.Sprintf(text, name)); (reported == nil) != fine[place+" "+kind] {
				t.Errorf("%s: %s: %q", place, kind, reported)
			}
		}
	}
}
