package manifest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

const editedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: i, image: "tool:1"}]
      containers: [{name: c, image: "web:1"}, {name: d, image: "web:1", imagePullPolicy: Never}]
`

// editStored is manifest.Edit for a change without an error.
func editStored(t *testing.T, stored *pod.Object, change func(metav1.Object)) (*pod.Object, *workload.Spec) {
	t.Helper()
	o, err := manifest.Edit(stored, func(object metav1.Object) error { change(object); return nil })
	if err != nil {
		t.Fatal(err)
	}
	spec, err := workloads.NewSpec(o.Stored)
	if err != nil {
		t.Fatal(err)
	}
	return o.Stored, spec
}

// TestEditWorkload checks that a change of a workload keeps its identity and its unset pull policies, and that
// a roll-back leads to the revision of before.
func TestEditWorkload(t *testing.T) {
	list, err := manifest.Load("web.yaml", []byte(editedDeployment))
	if err != nil {
		t.Fatal(err)
	}
	first := list[0].Stored
	first.UID, first.Revision, first.RequireLimits = "u", 3, true
	was, err := workloads.NewSpec(first)
	if err != nil {
		t.Fatal(err)
	}
	if was.Cause != "first" {
		t.Errorf("cause %q", was.Cause)
	}
	labelled, spec := editStored(t, first, func(o metav1.Object) { o.SetLabels(map[string]string{"a": "b"}) })
	if spec.Revision != was.Revision || labelled.Labels["a"] != "b" || labelled.UID != "u" || labelled.Revision != 3 || !labelled.RequireLimits {
		t.Errorf("labelled: %+v", labelled)
	}
	if !slices.Equal(labelled.DefaultedPullPolicies, first.DefaultedPullPolicies) || len(first.DefaultedPullPolicies) != 2 {
		t.Errorf("unset pull policies %v, before %v", labelled.DefaultedPullPolicies, first.DefaultedPullPolicies)
	}
	second, spec := editStored(t, first, func(o metav1.Object) {
		if missing := workloads.SetImages(o, map[string]string{"c": "web:latest", "i": "tool:2"}); missing != "" {
			t.Errorf("there is no %s", missing)
		}
		o.SetAnnotations(nil)
		*workloads.Replicas(o) = 5
	})
	if spec.Revision == was.Revision || spec.Replicas != 5 || spec.Cause != "" || !strings.Contains(string(second.Spec), `"image":"web:latest"`) || strings.Count(string(second.Spec), `"image":"web:1"`) != 1 {
		t.Errorf("another image: %s %+v", second.Spec, spec)
	}
	back, spec := editStored(t, second, func(o metav1.Object) {
		r := &workload.Revision{Number: 1, Template: was.Template, Cause: "first"}
		if err := workloads.RollBack(o, r, second.DefaultedPullPolicies); err != nil {
			t.Error(err)
		}
	})
	if spec.Revision != was.Revision || spec.Replicas != 5 || spec.Cause != "first" || !slices.Equal(back.DefaultedPullPolicies, first.DefaultedPullPolicies) {
		t.Errorf("rolled back: %s %+v", back.Spec, spec)
	}
	_, spec = editStored(t, first, func(o metav1.Object) { workloads.RequestRestart(o, time.Unix(0, 0)) })
	if spec.Revision == was.Revision {
		t.Error("a restart has the revision of before")
	}
}

func TestEditIsChecked(t *testing.T) {
	list, err := manifest.Load("web.yaml", []byte(editedDeployment))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(metav1.Object){
		"spec.replicas: Invalid value":   func(o metav1.Object) { *workloads.Replicas(o) = -1 },
		"metadata.labels: Invalid value": func(o metav1.Object) { o.SetLabels(map[string]string{"a b": ""}) },
		"image: Required value":          func(o metav1.Object) { workloads.SetImages(o, map[string]string{"*": ""}) },
	} {
		_, err := manifest.Edit(list[0].Stored, func(o metav1.Object) error { change(o); return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if missing := workloads.SetImages(list[0].Value, map[string]string{"c": "x", "e": "y", "*": "z"}); missing != "e" {
		t.Errorf("missing %q", missing)
	}
}

// TestEditEndpointSlice checks that an EndpointSlice belongs to the Service that its changed label names.
func TestEditEndpointSlice(t *testing.T) {
	list, err := manifest.Load("slice.yaml", []byte(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.1]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := manifest.Edit(list[0].Stored, func(object metav1.Object) error {
		object.SetLabels(map[string]string{"kubernetes.io/service-name": "other"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if is := o.Stored.Endpoints; is.Service != "other" || len(is.List) != 1 || list[0].Stored.Endpoints.Service != "db" {
		t.Errorf("endpoints of %q: %+v", is.Service, is.List)
	}
}
