package manifest

import "fmt"

// otherKinds are the kinds that people put beside or around a Pod, with what to do
// today. A kind that is not here is told what podrun runs.
var otherKinds = map[string]string{
	"ConfigMap":             "put the values into the Pod's env, or the file into an image, and remove this document",
	"Secret":                "put the values into the Pod's env, or the file into an image, and remove this document",
	"PersistentVolumeClaim": "use an emptyDir volume, and remove this document",
	"PersistentVolume":      "use an emptyDir volume, and remove this document",
	"Service":               "containers of one Pod reach each other on localhost; remove this document",
	"ServiceAccount":        "there is no API server to log in to; remove this document",
	"Namespace":             "a namespace needs no object; remove this document",
	"Deployment":            fromTemplate,
	"ReplicaSet":            fromTemplate,
	"ReplicationController": fromTemplate,
	"StatefulSet":           fromTemplate,
	"DaemonSet":             fromTemplate,
	"Job":                   fromTemplate,
	"CronJob":               "make a Pod of its spec.jobTemplate.spec.template: apiVersion v1, kind Pod, a name, and the template's spec",
	"PodTemplate":           "make a Pod of its template: apiVersion v1, kind Pod, a name, and the template's spec",
}

const fromTemplate = "make a Pod of its spec.template: apiVersion v1, kind Pod, a name, and the template's spec"

// refuseKind says that an object of a kind is not taken, and what to do.
func refuseKind(kind string) string {
	cure, ok := otherKinds[kind]
	if !ok {
		cure = "podrun runs objects of apiVersion v1, kind Pod; remove this document"
	}
	return fmt.Sprintf("%s is not supported yet: %s", clip(kind, 60), cure)
}
