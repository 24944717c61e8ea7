package build

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// resourceValue returns the value of a reference to a request or limit of a container. For an unset limit it
// returns the effective one, by the rule for the pod's limits, else what pods may use.
func (b *builder) resourceValue(ref *corev1.ResourceFieldSelector) (string, error) {
	name := cmp.Or(ref.ContainerName, b.c.Name)
	c, effective := b.find(name)
	if c == nil {
		return "", fmt.Errorf("container %s not found", name)
	}
	q := podutil.ReferencedResource(c, ref)
	if of, limit := strings.CutPrefix(ref.Resource, "limits."); limit && q.IsZero() {
		q = b.unlimited(of, effective)
	}
	return podutil.DivideResource(q, ref), nil
}

// unlimited returns the limit of a resource for a container that sets none.
func (b *builder) unlimited(of string, effective pod.Resources) resource.Quantity {
	switch name := corev1.ResourceName(of); {
	case name == corev1.ResourceCPU && effective.CPULimit > 0:
		return *resource.NewMilliQuantity(effective.CPULimit, resource.DecimalSI)
	case name == corev1.ResourceMemory && effective.MemoryLimit > 0:
		return *resource.NewQuantity(effective.MemoryLimit, resource.BinarySI)
	default:
		return b.allocatable[name] // without huge pages, which are never shared
	}
}

// find returns a container of the pod, with its effective resources.
func (b *builder) find(name string) (*corev1.Container, pod.Resources) {
	s := &b.pod.Spec
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i], resourcesAt(b.effective.Containers, i)
		}
	}
	for i := range s.InitContainers {
		if s.InitContainers[i].Name == name {
			return &s.InitContainers[i], resourcesAt(b.effective.InitContainers, i)
		}
	}
	return nil, pod.Resources{}
}

// resourcesAt returns an item of a list that may be shorter.
func resourcesAt(list []pod.Resources, i int) pod.Resources {
	if i < len(list) {
		return list[i]
	}
	return pod.Resources{}
}

const (
	memoryPage = 4096 // kubelet: defaultPageSize
	// The part of the memory between request and limit that a container may use before it is slowed
	// down, in tenths (kubelet: DefaultMemoryThrottlingFactor, 0.9).
	throttlingTenths = 9
)

// memoryQoS adds the resources that the annotation requests to a plan (kubelet:
// generateLinuxContainerResources, ResourceConfigForPod and ApplyPodLevelMemoryHigh). allocatable is the
// memory in bytes that pods may use, the limit of containers without one.
func memoryQoS(p *corev1.Pod, plan *pod.Plan, allocatable int64) {
	if p.Annotations[podutil.AnnotationMemoryQoS] != "true" {
		return
	}
	guaranteed := plan.QOSClass == string(corev1.PodQOSGuaranteed)
	protect := func(r *pod.Resources) {
		if guaranteed {
			r.MemoryMin = r.MemoryRequest
		} else {
			r.MemoryLow = r.MemoryRequest
		}
	}
	whole := helpers.IsPodLevelResourcesSet(p) && !p.Spec.Resources.Limits.Memory().IsZero()
	protect(&plan.Resources)
	if whole {
		plan.Resources.MemoryHigh = memoryHigh(plan.Resources, 0)
	}
	for _, l := range []struct {
		spec []corev1.Container
		plan []pod.Container
	}{{p.Spec.InitContainers, plan.InitContainers}, {p.Spec.Containers, plan.Containers}} {
		for i := range l.plan {
			r := &l.plan[i].Resources
			protect(r)
			// If the pod has a limit of its own, its memory.high applies to a container without
			// a limit.
			if !whole || !l.spec[i].Resources.Limits.Memory().IsZero() {
				r.MemoryHigh = memoryHigh(*r, allocatable)
			}
		}
	}
}

// memoryHigh returns the memory use at which throttling begins for these resources; 0: never.
func memoryHigh(r pod.Resources, allocatable int64) int64 {
	limit := r.MemoryLimit
	if limit == 0 {
		limit = allocatable
	}
	if limit <= r.MemoryRequest {
		return 0
	}
	between := limit - r.MemoryRequest
	high := (r.MemoryRequest + between/10*throttlingTenths + between%10*throttlingTenths/10) / memoryPage * memoryPage
	if high <= r.MemoryRequest {
		return 0
	}
	return high
}

// storageLimits returns the limits of a Pod's use of disk, in the order and with the messages of the kubelet
// (localStorageEviction in pkg/kubelet/eviction): each emptyDir, then the pod as a whole, then the
// containers, sidecars included, that stay.
func storageLimits(p *corev1.Pod) []pod.Limit {
	var limits []pod.Limit
	for _, v := range p.Spec.Volumes {
		e := v.EmptyDir
		if e == nil || e.Medium == corev1.StorageMediumMemory || e.SizeLimit == nil || e.SizeLimit.Sign() != 1 {
			continue
		}
		limits = append(limits, pod.Limit{Kind: pod.VolumeLimit, Name: v.Name, Bytes: e.SizeLimit.Value(),
			Message: fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, e.SizeLimit.String())})
	}
	if q, ok := helpers.PodLimits(p, helpers.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]; ok {
		limits = append(limits, pod.Limit{Kind: pod.PodLimit, Bytes: q.Value(),
			Message: fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", q.String())})
	}
	add := func(c *corev1.Container) {
		if q := c.Resources.Limits.StorageEphemeral(); q.Value() != 0 {
			limits = append(limits, pod.Limit{Kind: pod.ContainerLimit, Name: c.Name, Bytes: q.Value(),
				Message: fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, q.String())})
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; podutil.IsSidecar(c) {
			add(c)
		}
	}
	return limits
}

// oomScoreAdj returns a container's oom_score_adj, which orders the processes that the kernel kills when the
// machine has no memory left. It is computed as in the kubelet (pkg/kubelet/qos/policy.go) for a Pod with
// its defaults. nodeMemory is the machine's memory in bytes; with 0, unknown, every request counts as 0.
func oomScoreAdj(p *corev1.Pod, c *corev1.Container, nodeMemory int64) int {
	class := resources.QOSClass(p)
	switch {
	case p.Spec.PriorityClassName == nodeCritical || class == corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case class == corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	spare := spareMemory(p)
	score := memoryScore(memoryRequest(c)+spare, nodeMemory)
	if podutil.IsSidecarOf(p, c) { // a sidecar is killed no sooner than the smallest app container
		score = min(score, memoryScore(smallestApp(p)+spare, nodeMemory))
	}
	return min(max(score, oomBestEffort+oomGuaranteed), oomBestEffort-1)
}

const (
	oomGuaranteed = -997
	oomBestEffort = 1000
	nodeCritical  = "system-node-critical"
)

// memoryScore returns 1000 for a container that requests nothing and 0 for one that requests all of the
// machine's memory.
func memoryScore(request, nodeMemory int64) int {
	switch {
	case nodeMemory <= 0:
		return oomBestEffort
	case request < 0 || request >= nodeMemory: // < 0: their sum overflowed
		return 0
	}
	hi, lo := bits.Mul64(1000, uint64(request))
	share, _ := bits.Div64(hi, lo, uint64(nodeMemory))
	return 1000 - int(share)
}

func memoryRequest(c *corev1.Container) int64 { return c.Resources.Requests.Memory().Value() }

func smallestApp(p *corev1.Pod) int64 {
	least := memoryRequest(&p.Spec.Containers[0])
	for i := range p.Spec.Containers {
		least = min(least, memoryRequest(&p.Spec.Containers[i]))
	}
	return least
}

// spareMemory returns each container's share of the pod's request beyond the sum of its containers'
// requests.
func spareMemory(p *corev1.Pod) int64 {
	if p.Spec.Resources == nil || p.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	requested := helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{})
	spare := p.Spec.Resources.Requests.Memory().Value() - requested.Memory().Value()
	return max(spare, 0) / int64(len(p.Spec.Containers)+len(p.Spec.InitContainers))
}

// logLimits returns the log limits of a valid Pod; 0 is the default.
func logLimits(p *corev1.Pod) (size int64, files int) {
	if text, ok := p.Annotations[podutil.AnnotationLogMaxSize]; ok {
		size, _ = podutil.ParseLogMaxSize(text)
	}
	if text, ok := p.Annotations[podutil.AnnotationLogMaxFiles]; ok {
		files, _ = podutil.ParseLogMaxFiles(text)
	}
	return size, files
}
