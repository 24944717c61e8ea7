package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

func TestValidate(t *testing.T) {
	h := clitest.NewHost(t)
	limits := `
apiVersion: v1
kind: Pod
metadata: {name: limits}
spec:
  nodeSelector: {disk: ssd}
  initContainers:
  - {name: prepare, image: "busybox:1", resources: {limits: {cpu: 100m, memory: 1Gi}}}
  containers:
  - {name: app, image: "busybox:1", resources: {requests: {cpu: 10m, memory: 1100Mi}}}
`
	for name, tc := range map[string]struct {
		stdin string
		code  int
		out   []string // lines, or their beginnings up to a note
		err   string
	}{
		"fine": {clitest.OneContainer, 0, []string{
			"standard input, document 1: pod web\n",
			"  supported  spec.containers[0].image\n",
			"  no requests or limits (QoS BestEffort)\n",
		}, ""},
		"two documents, with limits": {clitest.OneContainer + "---" + limits, 0, []string{
			"standard input, document 1: pod web\n",
			"standard input, document 2: pod limits\n",
			"  accepted   spec.nodeSelector: ",
			"  effective resources, by the rule \"effective\" (QoS Burstable):\n" +
				"    pod: cpu 10m to 100m, memory 1100Mi to 1100Mi\n" +
				"    prepare (init): cpu 10m to 100m, memory 1Gi to 1Gi\n" +
				"    app: cpu 10m to 100m, memory 1100Mi to 1100Mi\n",
		}, ""},
		"no YAML": {"kind: Pod\nspec: [", 2, nil, "podrun: standard input is not a manifest that podrun can run\n  standard input: document 1, line 2: "},
		"nothing": {"", 2, nil, "podrun: standard input is not a manifest that podrun can run\n  standard input: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Begin(tc.stdin, "validate", "-").Wait()
			if got.Code != tc.code || !strings.HasPrefix(got.Err, tc.err) || (tc.err == "") != (got.Err == "") {
				t.Errorf("%+v", got)
			}
			for _, want := range tc.out {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q is not in:\n%s", want, got.Out)
				}
			}
			if (len(tc.out) == 0) != (got.Out == "") {
				t.Errorf("stdout: %s", got.Out)
			}
		})
	}
}

// TestValidateFields checks that validate lists the fields of a manifest that decodes but cannot be run.
func TestValidateFields(t *testing.T) {
	h := clitest.NewHost(t)
	file := h.File(strings.Replace(clitest.OneContainer, "command: [sh]", `volumeDevices: [{name: disk, devicePath: /dev/xvda}]`, 1))
	got := h.Run("validate", file)
	if got.Code != 2 || !strings.Contains(got.Out, "  refused    spec.containers[0].volumeDevices") ||
		!strings.Contains(got.Err, "line 9: spec.containers[0].volumeDevices") {
		t.Errorf("%+v", got)
	}
}
