package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// hugePageName returns the kernel's name of a size, as in hugetlb.2MB.max.
func hugePageName(size int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for ; size >= 1024 && size%1024 == 0 && i < len(units)-1; i++ {
		size /= 1024
	}
	return fmt.Sprintf("%d%s", size, units[i])
}

// hugePages adds the limit of each size of huge pages to the effective resources of a Pod (kubelet:
// HugePageLimits in pkg/kubelet/cm). They cannot be shared, so a container that names none has none.
func (e *Effective) hugePages(p *corev1.Pod) {
	names := map[corev1.ResourceName]bool{}
	for c := range podutil.Containers(&p.Spec) {
		for name := range c.Resources.Limits {
			if _, ok := podutil.HugePageSize(name); ok {
				names[name] = true
			}
		}
	}
	for name := range names {
		size, _ := podutil.HugePageSize(name)
		s := declaredAmounts(p, name)
		set := func(r *pod.Resources, limit amount) {
			if r.HugePages == nil {
				r.HugePages = map[string]int64{}
			}
			r.HugePages[hugePageName(size)] = limit.value
		}
		set(&e.Pod, combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit }))
		for i, c := range s.inits {
			set(&e.InitContainers[i], c.limit)
		}
		for i, c := range s.apps {
			set(&e.Containers[i], c.limit)
		}
	}
}
