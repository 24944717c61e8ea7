package validation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// validateOptions checks the annotations that set options of containers.
func validateOptions(p *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		option, container, ok := podutil.CutContainerOption(key)
		if !ok {
			continue
		}
		value := p.Annotations[key]
		if container != "" && !slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == container }) {
			errs = append(errs, field.Invalid(path.Key(key), container, "container not found"))
		}
		if err := podutil.CheckContainerOption(option, value); err != nil {
			errs = append(errs, field.Invalid(path.Key(key), value, err.Error()))
		}
	}
	for i := range all {
		if podutil.ContainerOption(p, podutil.OptionUser, all[i].Name) != "" && hasNumericUser(p, &all[i]) {
			errs = append(errs, field.Forbidden(path.Key("podrun.dev/"+podutil.OptionUser), "cannot be combined with runAsUser and runAsGroup of container "+all[i].Name))
		}
	}
	return errs
}

// hasNumericUser reports whether fields set the user or the group of a container.
func hasNumericUser(p *corev1.Pod, c *corev1.Container) bool {
	sc, own := p.Spec.SecurityContext, c.SecurityContext
	return sc != nil && (sc.RunAsUser != nil || sc.RunAsGroup != nil) || own != nil && (own.RunAsUser != nil || own.RunAsGroup != nil)
}
