package validation_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/manifest/validation"
)

// TestValidateLifetime: changes of a pod's lifetime, in the words of the API server.
func TestValidateLifetime(t *testing.T) {
	const toleration = "tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]"
	for _, tt := range []struct{ old, new, want string }{
		{"", "activeDeadlineSeconds: 60", ""},
		{"activeDeadlineSeconds: 60", "activeDeadlineSeconds: 59", ""},
		{"activeDeadlineSeconds: 60", "activeDeadlineSeconds: 61", "spec.activeDeadlineSeconds: Invalid value: 61: must be less than or equal to previous value"},
		{"activeDeadlineSeconds: 60", "", "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		{"", toleration, ""},
		{toleration, strings.Replace(toleration, "5}", "6}, {key: b, operator: Exists}", 1), ""},
		{toleration, strings.Replace(toleration, "key: a", "key: b", 1), "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
		{toleration, "", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
	} {
		of := func(more string) *manifest.Object {
			return load(t, podYAML("{containers: [{name: a, image: b}], "+more+"}"))
		}
		err := manifest.ValidatePodUpdate(of(tt.new), of(tt.old).Pod)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("from %q to %q: %v, want %q", tt.old, tt.new, err, tt.want)
		}
	}
}

// TestValidateResize: the words are the API server's.
func TestValidateResize(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"more", "limits: {memory: 32Mi}", "limits: {memory: 64Mi, cpu: 1}", ""},
		{"another class", "{name: log, image: b}", "{name: log, image: b, resources: {limits: {memory: 5Mi}}}", ""},
		{"a limit less", "requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 32Mi}", "requests: {cpu: 100m, memory: 16Mi}",
			"spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"},
		{"a request less", "requests: {cpu: 10m}", "requests: {}", "spec.initContainers[1].resources.requests: Forbidden: resource requests cannot be removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was, is := load(t, podYAML(manifesttest.Resizable)).Pod, load(t, podYAML(manifesttest.Changed(t, tt.old, tt.new))).Pod
			var got []string
			for _, err := range validation.ValidateResize(was, is) {
				got = append(got, err.Error())
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
	guaranteed := load(t, podYAML(one("resources: {limits: {cpu: 1, memory: 1Mi}}"))).Pod
	burstable := load(t, podYAML(one("resources: {limits: {cpu: 1, memory: 1Mi}, requests: {cpu: 500m}}")))
	err := manifest.ValidatePodUpdate(burstable, guaranteed)
	if err == nil || !strings.Contains(err.Error(), `spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`) {
		t.Errorf("from Guaranteed to Burstable: %v", err)
	}
	whole := load(t, podYAML(`{resources: {limits: {cpu: 1}}, containers: [{name: a, image: b}]}`)).Pod
	for spec, want := range map[string]string{
		`{containers: [{name: a, image: b}]}`:                                     `spec.resources: Forbidden: pod-level resources cannot be removed`,
		`{resources: {limits: {memory: 1Gi}}, containers: [{name: a, image: b}]}`: `spec.resources.limits: Forbidden: pod-level resource limits cannot be removed`,
	} {
		if err := manifest.ValidatePodUpdate(load(t, podYAML(spec)), whole); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestResizePolicyIsChecked(t *testing.T) {
	for fields, want := range map[string]string{
		"resizePolicy: [{resourceName: disk, restartPolicy: NotRequired}]":                                                 `spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"`,
		"resizePolicy: [{resourceName: cpu, restartPolicy: Maybe}]":                                                        `spec.containers[0].resizePolicy: Unsupported value: "Maybe": supported values: "NotRequired", "RestartContainer"`,
		"resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: NotRequired}]": `spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"`,
	} {
		if got := mistakes(podYAML(one(fields))); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", fields, got)
		}
	}
	plain := `{initContainers: [{name: i, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}], containers: [{name: c, image: b}]}`
	if got := mistakes(podYAML(plain)); len(got) != 1 || !strings.Contains(got[0], "must not be set to 'RestartContainer' for non-sidecar initContainers") {
		t.Errorf("%q", got)
	}
	never := `{restartPolicy: Never, containers: [{name: c, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}`
	if got := mistakes(podYAML(never)); len(got) != 1 || !strings.Contains(got[0], "must be 'NotRequired' when pod `restartPolicy` is 'Never'") {
		t.Errorf("%q", got)
	}
}
