package manifest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// hugeNote is said of them in the support table.
const hugeNote = "the bytes are limited; where the cgroup controller hugetlb can be had: by root, and by others who were given it"

// pageSize is the size of a page in bytes, if name is that of huge pages.
func pageSize(name corev1.ResourceName) (int64, bool) {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() <= 0 {
		return 0, false
	}
	return q.Value(), true
}

// pageName is the kernel's name of a size, as in hugetlb.2MB.max.
func pageName(size int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for ; size >= 1024 && size%1024 == 0 && i < len(units)-1; i++ {
		size /= 1024
	}
	return fmt.Sprintf("%d%s", size, units[i])
}

// hugePages adds to the effective resources of a Pod what it may have of each size of
// huge pages (kubelet: HugePageLimits in pkg/kubelet/cm). They cannot be shared, so a
// container that names none has none.
func (e *Effective) hugePages(p *corev1.Pod) {
	names := map[corev1.ResourceName]bool{}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits {
				if _, ok := pageSize(name); ok {
					names[name] = true
				}
			}
		}
	}
	for name := range names {
		size, _ := pageSize(name)
		s := declared(p, name)
		set := func(r *pod.Resources, limit amount) {
			if r.HugePages == nil {
				r.HugePages = map[string]int64{}
			}
			r.HugePages[pageName(size)] = limit.value
		}
		set(&e.Pod, combine(p, s, func(_ int, c share, _ bool) amount { return c.limit }))
		for i, c := range s.inits {
			set(&e.InitContainers[i], c.limit)
		}
		for i, c := range s.apps {
			set(&e.Containers[i], c.limit)
		}
	}
}

// validateHugePages is what ValidateContainerResourceRequirements in
// pkg/apis/core/validation says of huge pages.
func validateHugePages(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	any, base := false, false
	for _, l := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range sorted(l.list) {
			base = base || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			size, ok := pageSize(name)
			if !ok {
				continue
			}
			any = true
			q, at := l.list[name], path.Child(l.name).Key(string(name))
			if q.Value()%size != 0 {
				errs = append(errs, field.Invalid(at, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name)))
			}
			limit, limited := r.Limits[name]
			switch {
			case !limited:
				errs = append(errs, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
			case q.Cmp(limit) != 0:
				errs = append(errs, field.Invalid(path.Child("requests"), q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
			}
		}
	}
	if any && !base {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return errs
}
