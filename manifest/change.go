package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// ValidateStored checks a change of an object as the API server checks an update
// (ValidateConfigMapUpdate and the like in pkg/apis/core/validation of Kubernetes). The
// error is an *Errors.
func ValidateStored(o *Object, old *pod.Object) error {
	errs := &Errors{}
	for _, bad := range storedUpdate(old, o.Stored) {
		o.fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.result()
}

// ValidateChange is ValidateResize and validateLifetime for the pod that the object is to be made of; the
// error is an *Errors that says where in the file the mistakes are.
func ValidateChange(o *Object, old *corev1.Pod) error {
	errs := &Errors{}
	for _, bad := range append(ValidateResize(old, o.Pod), validateLifetime(&old.Spec, &o.Pod.Spec)...) {
		o.fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.result()
}

// AskNetwork chooses the network of a Pod that Load returned and that does not say.
func AskNetwork(o *Object, mode string) error {
	p := o.Pod
	if _, says := p.Annotations[AnnotationNetwork]; says || p.Spec.HostNetwork {
		return nil
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[AnnotationNetwork] = mode
	defaultHostPorts(p)
	errs := &Errors{}
	for _, bad := range validateNetwork(p, field.NewPath("metadata"), field.NewPath("spec")) {
		o.fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.result()
}
