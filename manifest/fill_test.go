package manifest

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFillTakesOrdinaryPods: Kubernetes' decoder, which takes long to begin, has no part in them.
func TestFillTakesOrdinaryPods(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		took bool
	}{
		"ordinary": {one(`resources: {limits: {cpu: 1, memory: 1Gi}}, tty: false, env: [{name: a, value: b}], command: [],
			ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: http}, periodSeconds: 5}`), true},
		"null": {one("env: ~"), false},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := split([]byte(podYAML(c.text)))
			if err != nil {
				t.Fatal(err)
			}
			d := decoder{doc: docs[0], errs: &Errors{}, schema: schema{}}
			if d.tree, _ = parseTree(d.doc.data); d.tree == nil {
				t.Fatal("no tree")
			}
			root, _ := d.generic()
			if took := d.schema.fill(reflect.ValueOf(&corev1.Pod{}).Elem(), root); took != c.took {
				t.Errorf("taken: %t", took)
			}
		})
	}
}
