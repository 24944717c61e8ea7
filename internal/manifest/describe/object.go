package describe

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Related is the information about other objects on an object's page.
type Related struct {
	Pods      []corev1.Pod        // the pods that it makes, or that use it, with their status
	Endpoints map[string][]string // of a Service, by the names of its ports: address:port
	Local     []Field             // fields that only this machine has
	Events    []corev1.Event      // of the object itself: podrun has some of workloads
	NoEvents  bool                // leave out the section of events
}

// Object returns the page of an object with its status; for an unknown kind only its name and its labels.
func Object(object metav1.Object, of Related, now time.Time) string {
	p := newPage(now)
	switch o := object.(type) {
	case *appsv1.Deployment:
		p.deployment(o)
	case *appsv1.ReplicaSet:
		p.replicaSet(o, of.Pods)
	case *corev1.ReplicationController:
		p.replicationController(o, of.Pods)
	case *appsv1.StatefulSet:
		p.statefulSet(o, of.Pods)
	case *appsv1.DaemonSet:
		p.daemonSet(o, of.Pods)
	case *batchv1.Job:
		p.job(o)
	case *batchv1.CronJob:
		p.cronJob(o)
	default:
		p.storedObject(object, of)
	}
	for _, line := range of.Local {
		p.row(0, line.Name+":", line.Value)
	}
	if !of.NoEvents && hasEvents(object) {
		p.events(of.Events)
	}
	return p.String()
}

// storedObject writes the page of an object that makes no pods.
func (p *page) storedObject(object metav1.Object, of Related) {
	switch o := object.(type) {
	case *corev1.Service:
		p.service(o, of.Endpoints)
	case *corev1.ConfigMap:
		p.configMap(o)
	case *corev1.Secret:
		p.secret(o)
	case *corev1.PersistentVolumeClaim:
		p.claim(o, of.Pods)
	case *corev1.PersistentVolume:
		p.persistentVolume(o)
	case *corev1.Endpoints:
		p.endpoints(o)
	case *discoveryv1.EndpointSlice:
		p.endpointSlice(o)
	case *corev1.ServiceAccount:
		p.nameAndNamespace(o)
		p.labelsAndAnnotations(o)
		var names []string
		for _, s := range o.ImagePullSecrets {
			names = append(names, s.Name)
		}
		p.list("Image pull secrets:", names)
	case *networkingv1.NetworkPolicy:
		p.networkPolicy(o)
	case *corev1.Namespace:
		p.row(0, "Name:", o.Name)
		p.labelsAndAnnotations(o)
		p.row(0, "Status:", string(o.Status.Phase))
	default:
		p.nameAndNamespace(o)
		p.labelsAndAnnotations(o)
	}
}

// hasEvents reports whether kubectl prints events for an object's kind.
func hasEvents(object metav1.Object) bool {
	switch object.(type) {
	case *corev1.Secret, *corev1.Namespace, *networkingv1.NetworkPolicy:
		return false
	}
	return true
}
