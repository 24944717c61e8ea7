package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValidate has one line per rule: a mistake, and its message in the API server's words. The document is
// the spec of a pod with one container c, or a whole spec if it begins with a brace.
func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 254)
	const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	const label = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	for _, test := range []struct{ in, want string }{
		{"{}", "spec.containers: Required value"},
		{"{containers: [{}]}", "spec.containers[0].image: Required value\nspec.containers[0].name: Required value"},
		{"{containers: [{name: A, image: i}]}", `spec.containers[0].name: Invalid value: "A": ` + label},
		{"{containers: [{name: a, image: i}, {name: a, image: i}]}", `spec.containers[1].name: Duplicate value: "a"`},
		{"{initContainers: [{name: a, image: i}, {name: a, image: i}], containers: [{name: c, image: i}]}", `spec.initContainers[1].name: Duplicate value: "a"`},
		{"{containers: [{name: a, image: i}], restartPolicy: always}", `spec.restartPolicy: Unsupported value: "always": supported values: "Always", "OnFailure", "Never"`},
		{"{containers: [{name: a, image: i}], hostname: a.b}", `spec.hostname: Invalid value: "a.b": must not contain dots`},
		{"{containers: [{name: a, image: i}], nodeName: A}", `spec.nodeName: Invalid value: "A": ` + subdomain},
		{"{containers: [{name: a, image: i}], os: {name: plan9}}", `spec.os.name: Unsupported value: "plan9": supported values: "linux", "windows"`},
		{"{containers: [{name: a, image: i}], os: {name: windows}}", `spec.os.name: "windows" is not supported yet, only linux`},
		{"{containers: [{name: a, image: i}], terminationGracePeriodSeconds: 2147483648}", "spec.terminationGracePeriodSeconds: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"},
		{"{containers: [{name: a, image: i}], dnsPolicy: Mine}", `spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`},
		{"imagePullPolicy: Sometimes", `spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`},
		{"terminationMessagePolicy: Log", `spec.containers[0].terminationMessagePolicy: Unsupported value: "Log": supported values: "File", "FallbackToLogsOnError"`},
		{"ports: [{containerPort: 80, name: '80'}]", `spec.containers[0].ports[0].name: Invalid value: "80": must contain at least one letter (a-z)`},
		{"ports: [{containerPort: 80, name: web}, {containerPort: 81, name: web}]", `spec.containers[0].ports[1].name: Duplicate value: "web"`},
		{"ports: [{containerPort: 80, protocol: tcp}]", `spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"`},
		{"env: [{value: a}]", "spec.containers[0].env[0].name: Required value"},
		{"env: [{name: a, valueFrom: {}}]", "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"},
		{"env: [{name: a, valueFrom: {fieldRef: {}}}]", "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value"},
		{"env: [{name: a, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a b']\"}}}]", "spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
		{"env: [{name: a, valueFrom: {fieldRef: {fieldPath: \"spec.x['a']\"}}}]", "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x['a']\": error converting fieldPath: field label does not support subscript: spec.x['a']"},
		{"env: [{name: a, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}]", `spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2`},
		{"volumeMounts: [{name: v, mountPath: /v}]", `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"volumeMounts: [{}]", "spec.containers[0].volumeMounts[0].mountPath: Required value\nspec.containers[0].volumeMounts[0].name: Not found: \"\"\nspec.containers[0].volumeMounts[0].name: Required value"},
		{"resources: {requests: {cpu: 2}, limits: {cpu: 1}}", `spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{"resources: {limits: {memory: -1}, requests: {memory: -2}}", "spec.containers[0].resources.limits[memory]: Invalid value: \"-1\": must be greater than or equal to 0\nspec.containers[0].resources.requests[memory]: Invalid value: \"-2\": must be greater than or equal to 0"},
		{"{containers: [{name: a, image: i, resources: {limits: {cpu: 3}}}], resources: {limits: {cpu: 2}, requests: {cpu: 1}}}", "spec.containers[0].resources.limits[cpu]: Invalid value: \"3\": must be less than or equal to pod limits of 2\nspec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 3"},
		{"securityContext: {runAsUser: -1}", "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"securityContext: {seccompProfile: {type: Default}}", `spec.containers[0].securityContext.seccompProfile.type: Unsupported value: "Default": supported values: "Localhost", "RuntimeDefault", "Unconfined"`},
		{"restartPolicy: Perhaps", `spec.containers[0].restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "Never", "OnFailure"`},
	} {
		spec := test.in
		if !strings.HasPrefix(spec, "{") {
			spec = one(test.in)
		}
		var got []string
		for _, m := range mistakes(podYAML(spec)) {
			_, m, _ = strings.Cut(m, ": ") // without the line
			got = append(got, m)
		}
		if diff := cmp.Diff(strings.Split(test.want, "\n"), got); diff != "" {
			t.Errorf("%s:\n%s", test.in, diff)
		}
	}
	for _, test := range []struct{ meta, want string }{
		{"{}", "metadata.name: Required value: name or generateName is required"},
		{"{name: " + long + "}", `metadata.name: Invalid value: "` + long[:100] + `…": must be no more than 253 characters`},
		{`{name: "a\0"}`, `metadata.name: Invalid value: "a\x00": ` + subdomain},
		{`{name: "a\n"}`, `metadata.name: Invalid value: "a\n": ` + subdomain},
		{"{name: a/b}", `metadata.name: Invalid value: "a/b": ` + subdomain},
		{"{name: ..}", `metadata.name: Invalid value: "..": ` + subdomain},
		{"{name: a, namespace: a.b}", `metadata.namespace: Invalid value: "a.b": must not contain dots`},
		{"{name: a, labels: {'a b': c}}", `metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
	} {
		got := mistakes("apiVersion: v1\nkind: Pod\nmetadata: " + test.meta + "\nspec: " + one("") + "\n")
		if diff := cmp.Diff([]string{"document 1, line 3: " + test.want}, got); diff != "" {
			t.Errorf("%s:\n%s", test.meta, diff)
		}
	}
}

// TestValidateTakes: unusual but valid specs.
func TestValidateTakes(t *testing.T) {
	for _, spec := range []string{
		one(""),
		one("env: [{name: a.b-c, value: ''}, {name: 'A B', value: x}]"),
		one("env: [{name: a, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['Example.com/Key']\"}}}]"),
		one("command: [''], args: ['a\nb']"),
		one("ports: [{containerPort: 80}, {containerPort: 80}, {containerPort: 80, protocol: SCTP}]"),
		one("resources: {limits: {cpu: 0}}"),
		one("securityContext: {capabilities: {add: [ALL, net_admin], drop: [all]}, runAsUser: 0, allowPrivilegeEscalation: false, seccompProfile: {type: Unconfined}}"),
		"{containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: a/b}, {name: v, mountPath: /a}]}], volumes: [{name: v}]}",
		"{containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: w, emptyDir: {}}]}",
		"{containers: [{name: c, image: i}], initContainers: [{name: s, image: i, restartPolicy: Always}]}",
		"{containers: [{name: c, image: i}], hostNetwork: false, hostUsers: true, setHostnameAsFQDN: false, os: {name: linux}}",
		"{containers: [{name: c, image: i}], securityContext: {supplementalGroupsPolicy: Merge, sysctls: [{name: net/ipv4/ip_local_port_range, value: '1024 65535'}, {name: net.ipv4.ip_local_reserved_ports, value: '8080,9000-9100'}]}}",
		"{containers: [{name: c, image: i}], tolerations: [{operator: Exists}], nodeSelector: {a: b}, affinity: {nodeAffinity: {}}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], priorityClassName: high}",
		"{containers: [{name: c, image: i}], terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 2147483647}",
	} {
		if got := mistakes(podYAML(spec)); got != nil {
			t.Errorf("%s:\n%s", spec, strings.Join(got, "\n"))
		}
	}
}
