package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
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

// SetAutoUpdate sets the policies of automatic updates of Pods that Load returned. A policy is registry, local, or
// CONTAINER/POLICY.
func SetAutoUpdate(pods []Object, policies []string) error {
	var errs []error
	for _, policy := range policies {
		key, found := podutil.AnnotationAutoUpdate, true
		container, of, named := strings.Cut(policy, "/")
		if named {
			key, policy, found = key+"/"+container, of, false
		}
		if policy != podutil.AutoUpdateRegistry && policy != podutil.AutoUpdateLocal {
			errs = append(errs, fmt.Errorf("the policy of automatic updates is %s or %s, not %q", podutil.AutoUpdateRegistry, podutil.AutoUpdateLocal, policy))
			continue
		}
		for i := range pods {
			p := pods[i].Pod
			if named && !slices.Contains(podutil.ContainerNames(p), container) {
				continue
			}
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key], found = policy, true
		}
		if !found {
			errs = append(errs, fmt.Errorf("no pod has the container %q, which is to be updated automatically", container))
		}
	}
	return errors.Join(errs...)
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
