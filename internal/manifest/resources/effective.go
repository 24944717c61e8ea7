package resources

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// Rule selects how a pod's limits are computed.
type Rule string

const (
	// RuleEffective is podrun's rule: the pod's limit is the higher of what its init containers and its
	// app containers declare, and a container without a request or a limit gets the pod's (the
	// init-containers proposal of 2016).
	RuleEffective Rule = "effective"

	// RuleKubelet is the rule of today's kubelet: the pod has a limit only if every container declares
	// one, and a container without one has none.
	RuleKubelet Rule = "kubelet"
)

// Effective is the effective resources of a pod and of each of its containers.
type Effective struct {
	Rule           Rule
	Pod            pod.Resources
	InitContainers []pod.Resources // in the order of spec.initContainers
	Containers     []pod.Resources // in the order of spec.containers
	QOSClass       string          // Guaranteed, Burstable or BestEffort
}

// ComputeEffective computes the effective resources of a Pod, by the rule in its annotation
// podrun.dev/pod-limits. The Pod must be as written: with the API server's defaults, an omitted request
// looks like a written one.
func ComputeEffective(p *corev1.Pod) Effective {
	defaulted := p.DeepCopy()
	defaulting.SetDefaults(defaulted)
	e := Effective{
		Rule:           RuleEffective,
		InitContainers: make([]pod.Resources, len(p.Spec.InitContainers)),
		Containers:     make([]pod.Resources, len(p.Spec.Containers)),
		QOSClass:       string(QOSClass(defaulted)),
	}
	work := effective
	if p.Annotations[podutil.AnnotationPodLimits] == string(RuleKubelet) {
		e.Rule, work, p = RuleKubelet, kubelet, defaulted
	}
	cpu, memory := work(p, corev1.ResourceCPU), work(p, corev1.ResourceMemory)
	e.Pod = resources(cpu.pod, memory.pod)
	for i := range e.InitContainers {
		e.InitContainers[i] = resources(cpu.inits[i], memory.inits[i])
	}
	for i := range e.Containers {
		e.Containers[i] = resources(cpu.apps[i], memory.apps[i])
	}
	e.hugePages(p)
	e.pids(p)
	return e
}

// requestAndLimit is one resource of a pod or a container, in thousandths of a CPU or bytes.
type requestAndLimit struct{ request, limit amount }

// podAmounts is one resource of a pod and all its containers.
type podAmounts struct {
	pod         requestAndLimit
	inits, apps []requestAndLimit
}

// amount is a quantity that may be missing.
type amount struct {
	value int64
	set   bool
}

func (a amount) or(b amount) amount {
	if a.set {
		return a
	}
	return b
}

func (a amount) atMost(b amount) amount {
	if a.set && b.set && b.value < a.value {
		return b
	}
	return a
}

func amountOf(list corev1.ResourceList, name corev1.ResourceName) amount {
	q, ok := list[name]
	if !ok {
		return amount{}
	}
	if name == corev1.ResourceCPU {
		return amount{q.MilliValue(), true}
	}
	return amount{q.Value(), true}
}

// declaredAmounts returns one resource as written in the manifest.
func declaredAmounts(p *corev1.Pod, name corev1.ResourceName) podAmounts {
	of := func(r *corev1.ResourceRequirements) requestAndLimit {
		return requestAndLimit{amountOf(r.Requests, name), amountOf(r.Limits, name)}
	}
	var s podAmounts
	if p.Spec.Resources != nil {
		s.pod = of(p.Spec.Resources)
	}
	for i := range p.Spec.InitContainers {
		s.inits = append(s.inits, of(&p.Spec.InitContainers[i].Resources))
	}
	for i := range p.Spec.Containers {
		s.apps = append(s.apps, of(&p.Spec.Containers[i].Resources))
	}
	return s
}

// effective applies RuleEffective to one resource. If no container has an explicit request, the limits count
// as requests, as the API server defaults them. If one has, the limit of an init container does not count as
// a request.
func effective(p *corev1.Pod, name corev1.ResourceName) podAmounts {
	s := declaredAmounts(p, name)
	requested := func(i int, c requestAndLimit, init bool) amount {
		if init && !podutil.IsSidecar(&p.Spec.InitContainers[i]) {
			return c.request
		}
		return c.request.or(c.limit)
	}
	limit := combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit })
	request := limit
	if anyRequest(s) {
		request = combine(p, s, requested)
	}
	request = s.pod.request.or(request).or(s.pod.limit)
	if limit.set {
		limit = maxAmount(limit, request) // never below the request
	}
	whole := requestAndLimit{request, s.pod.limit.or(limit)}
	s.pod = whole
	for i, c := range s.inits {
		s.inits[i] = requestAndLimit{requested(i, c, true).or(whole.request.atMost(c.limit)), c.limit.or(whole.limit)}
	}
	for i, c := range s.apps {
		s.apps[i] = requestAndLimit{requested(i, c, false).or(whole.request), c.limit.or(whole.limit)}
	}
	return s
}

// anyRequest reports whether any container has an explicit request of the resource.
func anyRequest(s podAmounts) bool {
	for _, list := range [][]requestAndLimit{s.inits, s.apps} {
		for _, c := range list {
			if c.request.set {
				return true
			}
		}
	}
	return false
}

// kubelet applies RuleKubelet to one resource of a Pod with its defaults (ResourceConfigForPod in
// pkg/kubelet/cm of Kubernetes).
func kubelet(p *corev1.Pod, name corev1.ResourceName) podAmounts {
	s := declaredAmounts(p, name)
	request := combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.request })
	limit := combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit })
	for _, list := range [][]requestAndLimit{s.inits, s.apps} {
		for i, c := range list {
			if c.limit.value == 0 {
				limit = amount{}
			}
			list[i].limit = c.limit.or(s.pod.limit)
			if name == corev1.ResourceCPU {
				list[i].request = c.request.or(list[i].limit)
			}
		}
	}
	s.pod = requestAndLimit{s.pod.request.or(request), s.pod.limit.or(limit)}
	return s
}

// combine applies the formula of KEP-753. The result is the higher of two values: the sum of app containers
// and sidecars, which run together in the end, and the peak before, of one init container and the sidecars
// started before it.
func combine(p *corev1.Pod, s podAmounts, of func(i int, c requestAndLimit, init bool) amount) amount {
	var end, peak, running amount
	for i, c := range s.apps {
		end = addAmounts(end, of(i, c, false))
	}
	for i, c := range s.inits {
		a := of(i, c, true)
		if podutil.IsSidecar(&p.Spec.InitContainers[i]) {
			end, running = addAmounts(end, a), addAmounts(running, a)
			peak = maxAmount(peak, running)
		} else {
			peak = maxAmount(peak, addAmounts(running, a))
		}
	}
	return maxAmount(end, peak)
}

// addAmounts adds, and saturates at the highest number.
func addAmounts(a, b amount) amount {
	sum := a.value + b.value
	if sum < 0 {
		sum = math.MaxInt64
	}
	return amount{sum, a.set || b.set}
}

func maxAmount(a, b amount) amount {
	return amount{max(a.value, b.value), a.set || b.set}
}

// resources combines the two resources of one pod or container.
func resources(cpu, memory requestAndLimit) pod.Resources {
	return pod.Resources{
		CPURequest: cpu.request.value, CPULimit: cpu.limit.value,
		MemoryRequest: memory.request.value, MemoryLimit: memory.limit.value,
	}
}

// Changed reports which resources of a container differ.
func Changed(was, is *corev1.Container) (cpu, memory bool) {
	differs := func(name corev1.ResourceName) bool {
		return amountOf(was.Resources.Requests, name) != amountOf(is.Resources.Requests, name) ||
			amountOf(was.Resources.Limits, name) != amountOf(is.Resources.Limits, name)
	}
	return differs(corev1.ResourceCPU), differs(corev1.ResourceMemory)
}
