package manifest

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// ValidateResize checks that the resources of a running Pod may become those of
// another with the same containers, as the API server does and in its words
// (ValidatePodResize in pkg/apis/core/validation of Kubernetes). Both have their
// defaults.
func ValidateResize(old, new *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if is, was := qosClass(new), qosClass(old); is != was {
		errs = append(errs, field.Invalid(spec, is, "Pod QOS Class may not change as a result of resizing"))
	}
	errs = append(errs, validatePodResize(old.Spec.Resources, new.Spec.Resources, spec.Child("resources"))...)
	for _, l := range []struct {
		name     string
		old, new []corev1.Container
	}{{"initContainers", old.Spec.InitContainers, new.Spec.InitContainers}, {"containers", old.Spec.Containers, new.Spec.Containers}} {
		for i := range l.old {
			errs = append(errs, noneRemoved(&l.old[i].Resources, &l.new[i].Resources, spec.Child(l.name).Index(i).Child("resources"), "resource")...)
		}
	}
	return errs
}

// validateLifetime checks a change of activeDeadlineSeconds and tolerations, in the words of
// the API server (ValidatePodUpdate).
func validateLifetime(old, new *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec", "activeDeadlineSeconds")
	switch was, is := old.ActiveDeadlineSeconds, new.ActiveDeadlineSeconds; {
	case was == nil:
	case is == nil:
		errs = append(errs, field.Invalid(at, is, "must not update from a positive integer to nil value"))
	case *is > *was:
		errs = append(errs, field.Invalid(at, *is, "must be less than or equal to previous value"))
	}
	for _, had := range old.Tolerations {
		if !slices.ContainsFunc(new.Tolerations, func(has corev1.Toleration) bool {
			has.TolerationSeconds = had.TolerationSeconds
			return reflect.DeepEqual(had, has)
		}) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
			break
		}
	}
	return errs
}

func validatePodResize(was, is *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	switch {
	case was == nil:
		return nil
	case is == nil:
		return field.ErrorList{field.Forbidden(path, "pod-level resources cannot be removed")}
	}
	return noneRemoved(was, is, path, "pod-level resource")
}

// noneRemoved: a resource that was there has to stay.
func noneRemoved(was, is *corev1.ResourceRequirements, path *field.Path, what string) field.ErrorList {
	var errs field.ErrorList
	for _, l := range []struct {
		name    string
		was, is corev1.ResourceList
	}{{"requests", was.Requests, is.Requests}, {"limits", was.Limits, is.Limits}} {
		for name := range l.was {
			if _, ok := l.is[name]; !ok {
				errs = append(errs, field.Forbidden(path.Child(l.name), fmt.Sprintf("%s %s cannot be removed", what, l.name)))
				break
			}
		}
	}
	return errs
}

// resized says which resources of a container differ.
func resized(was, is *corev1.Container) (cpu, memory bool) {
	differs := func(name corev1.ResourceName) bool {
		return amountOf(was.Resources.Requests, name) != amountOf(is.Resources.Requests, name) ||
			amountOf(was.Resources.Limits, name) != amountOf(is.Resources.Limits, name)
	}
	return differs(corev1.ResourceCPU), differs(corev1.ResourceMemory)
}

// restartsFor says whether a container is to be restarted when a resource is resized.
func restartsFor(c *corev1.Container, name corev1.ResourceName) bool {
	return slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer})
}

// validateResizePolicies checks those of all containers.
func validateResizePolicies(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range s.Containers {
		errs = append(errs, validateResizePolicy(s.Containers[i].ResizePolicy, path.Child("containers").Index(i).Child("resizePolicy"), s.RestartPolicy)...)
	}
	for i := range s.InitContainers {
		c, at := &s.InitContainers[i], path.Child("initContainers").Index(i).Child("resizePolicy")
		errs = append(errs, validateResizePolicy(c.ResizePolicy, at, s.RestartPolicy)...)
		for j, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer && !sidecar(c) {
				errs = append(errs, field.Invalid(at.Index(j).Child("restartPolicy"), p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	return errs
}

// validateResizePolicy is validateResizePolicy of pkg/apis/core/validation.
func validateResizePolicy(list []corev1.ContainerResizePolicy, path *field.Path, podPolicy corev1.RestartPolicy) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.ResourceName]bool{}
	for i, p := range list {
		if seen[p.ResourceName] {
			errs = append(errs, field.Duplicate(path.Index(i), p.ResourceName))
		}
		seen[p.ResourceName] = true
		errs = append(errs, oneOf(p.ResourceName, path, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, oneOf(p.RestartPolicy, path, corev1.NotRequired, corev1.RestartContainer)...)
		if podPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}

// update makes the Plan of a pod that lives, for a manifest that differs from old,
// the one it was made from, in what d says and nothing Fixed. images has those of
// d.Images. A container that must be restarted gets the next revision.
func update(plan *pod.Plan, old *corev1.Pod, o *object, d *difference, images map[string]pod.Image, opt options) (*pod.Plan, error) {
	known := map[string]pod.Image{}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for _, c := range list {
			// What is not in the plan any more is not asked for: only names matter.
			known[c.Name] = pod.Image{ID: c.ImageID, Layers: c.Layers, Entrypoint: c.Args, User: c.User}
		}
	}
	for _, v := range plan.Volumes {
		known[volumeUse(v.Name)] = pod.Image{Layers: v.Layers}
	}
	for _, name := range d.Images {
		known[name] = images[name]
	}
	opt.UID = plan.UID
	built, err := buildPlan(o, known, opt)
	if err != nil {
		return nil, err
	}
	next := *plan
	next.Resources, next.Labels, next.ActiveDeadlineSeconds = built.Resources, built.Labels, built.ActiveDeadlineSeconds
	next.Volumes = slices.Clone(plan.Volumes)
	for i := range next.Volumes { // labels, annotations and resources may be files
		if next.Volumes[i].Kind == pod.Files {
			next.Volumes[i].Sources = built.Volumes[i].Sources
		}
	}
	next.InitContainers = updated(plan.InitContainers, built.InitContainers, old.Spec.InitContainers, o.Pod.Spec.InitContainers, d)
	next.Containers = updated(plan.Containers, built.Containers, old.Spec.Containers, o.Pod.Spec.Containers, d)
	return &next, nil
}

func updated(plan, built []pod.Container, old, new []corev1.Container, d *difference) []pod.Container {
	var list []pod.Container
	for i, c := range plan {
		cpu, memory := resized(&old[i], &new[i])
		restart := cpu && restartsFor(&new[i], corev1.ResourceCPU) || memory && restartsFor(&new[i], corev1.ResourceMemory)
		if slices.Contains(d.Images, c.Name) {
			c, restart = built[i], true
		}
		c.Resources, c.OOMScoreAdj, c.Revision = built[i].Resources, built[i].OOMScoreAdj, plan[i].Revision
		c.Vars = built[i].Vars // they tell of labels and limits, from the next start on
		if restart {
			c.Revision, c.Asked = c.Revision+1, false
		}
		list = append(list, c)
	}
	return list
}
