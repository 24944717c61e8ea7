package cli

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	w := newWorld(t)
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
	refused := strings.Replace(oneContainer, "command: [sh]", "command: [sh], livenessProbe: {exec: {command: [\"true\"]}}, bad: 1", 1)
	var all strings.Builder
	for _, tc := range []struct {
		stdin string
		code  int
		args  []string
	}{
		{oneContainer, 0, []string{"validate", "-"}},
		{oneContainer + "---" + limits, 0, []string{"validate", "-f", "-"}},
		{"kind: Pod\nspec: [", 2, []string{"validate", "-"}},
		{"", 2, []string{"validate", "-"}},
		{refused, 2, []string{"validate", "-"}},
	} {
		got := w.begin(tc.stdin, tc.args...).wait()
		if got.code != tc.code {
			t.Errorf("code %d instead of %d: %+v", got.code, tc.code, got)
		}
		all.WriteString("$ podrun " + strings.Join(tc.args, " ") + "\n" + got.out + "--- stderr\n" + got.err + "\n")
	}
	golden(t, "testdata/validate.golden", all.String())
}

// What can be decoded is shown field by field, though it cannot be run.
func TestValidateShowsWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	file := w.file(strings.Replace(oneContainer, "command: [sh]", `livenessProbe: {exec: {command: ["true"]}}`, 1))
	got := w.run("validate", file)
	if got.code != 2 || !strings.Contains(got.out, "  refused   spec.containers[0].livenessProbe: ") ||
		!strings.Contains(got.err, "line 9: spec.containers[0].livenessProbe") {
		t.Errorf("%+v", got)
	}
}
