package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/manifest/defaulting"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/manifest/validation"
	"github.com/podrun/podrun/pod"
)

// ValidateObjectUpdate checks a change of an object as the API server checks an update
// (ValidateConfigMapUpdate and the like in pkg/apis/core/validation of Kubernetes). The error is an *Errors.
func ValidateObjectUpdate(o *Object, old *pod.Object) error {
	errs := &Errors{}
	for _, bad := range validation.ValidateObjectUpdate(old, o.Stored) {
		o.Fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.Err()
}

// ValidatePodUpdate runs ValidateResize and ValidateMutableFields for the pod that the object describes. The
// error is an *Errors with positions in the file.
func ValidatePodUpdate(o *Object, old *corev1.Pod) error {
	errs := &Errors{}
	for _, bad := range append(validation.ValidateResize(old, o.Pod), validation.ValidateMutableFields(&old.Spec, &o.Pod.Spec)...) {
		o.Fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.Err()
}

// SetNetwork sets the network of a Pod that Load returned, unless the Pod sets it.
func SetNetwork(o *Object, mode string) error {
	p := o.Pod
	if _, set := p.Annotations[podutil.AnnotationNetwork]; set || p.Spec.HostNetwork {
		return nil
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[podutil.AnnotationNetwork] = mode
	defaulting.SetHostPorts(p)
	errs := &Errors{}
	for _, bad := range validation.ValidateNetwork(p, field.NewPath("metadata"), field.NewPath("spec")) {
		o.Fail(errs, bad.Field, bad.ErrorBody())
	}
	return errs.Err()
}
