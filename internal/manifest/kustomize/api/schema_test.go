package api

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestSchemaOf: inline fields, pointers, lists and the tags of real types.
func TestSchemaOf(t *testing.T) {
	spec := SchemaOf(reflect.TypeFor[appsv1.Deployment]()).Fields["spec"]
	pod := spec.Fields["template"].Fields["spec"]
	containers := pod.Fields["containers"]
	if !containers.List || containers.MergeKey != "name" || !reflect.DeepEqual(containers.Strategies, []string{"merge"}) {
		t.Errorf("containers: %+v", containers)
	}
	if probe := containers.Fields["livenessProbe"]; probe.List || probe.Fields["exec"].Fields["command"] == nil || probe.Fields["periodSeconds"] == nil {
		t.Errorf("an inline field: %+v", probe)
	}
	if volumes := pod.Fields["volumes"]; !reflect.DeepEqual(volumes.Strategies, []string{"merge", "retainKeys"}) || volumes.Fields["emptyDir"] == nil {
		t.Errorf("volumes: %+v", volumes)
	}
	if labels := pod.Fields["nodeSelector"]; labels.List || labels.Fields != nil {
		t.Errorf("a map: %+v", labels)
	}
}
