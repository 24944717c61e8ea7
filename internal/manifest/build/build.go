package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// Options is the input of Plan beside the manifest and the images.
type Options struct {
	UID           string // the pod's own
	NodeName      string // for fieldRef spec.nodeName, and the host name of pods with hostNetwork
	NodeMemory    int64  // the machine's, in bytes; 0: unknown
	RequireLimits bool   // the pod must not run if limits are not enforced
	RemoveAtEnd   bool   // the pod removes itself when it has ended

	// Allocatable is how much CPU, memory and ephemeral storage pods may use, the limit of a container without one
	// (kubelet: pkg/kubelet/kubelet_resources.go).
	Allocatable corev1.ResourceList

	// Seccomp has the profiles that LocalSeccompProfiles names.
	Seccomp map[string]json.RawMessage
}

// Plan makes the Plan of a loaded Pod. images has all of its images by ImageUse.Key. Plan changes neither.
// The error is an *Errors that names each container that cannot be run.
func Plan(o *decode.Object, images map[string]pod.Image, opt Options) (*pod.Plan, error) {
	p := o.Pod.DeepCopy()
	p.UID = types.UID(opt.UID)
	p.Spec.NodeName = cmp.Or(p.Spec.NodeName, opt.NodeName)
	p.Spec.ServiceAccountName = cmp.Or(p.Spec.ServiceAccountName, "default")
	plan := &pod.Plan{
		Version: pod.PlanVersion, Namespace: p.Namespace, Name: p.Name, UID: opt.UID,
		Labels:                p.Labels,
		Hostname:              podutil.Hostname(p),
		Subdomain:             subdomain(p),
		HostnameAsFQDN:        ptr.Deref(p.Spec.SetHostnameAsFQDN, false),
		HostAliases:           hostAliases(&p.Spec),
		DNS:                   dns(&p.Spec),
		RestartPolicy:         pod.RestartPolicy(p.Spec.RestartPolicy),
		GraceSeconds:          *p.Spec.TerminationGracePeriodSeconds,
		ActiveDeadlineSeconds: ptr.Deref(p.Spec.ActiveDeadlineSeconds, 0),
		ShareProcessNamespace: ptr.Deref(p.Spec.ShareProcessNamespace, false),
		HostIPC:               p.Spec.HostIPC,
		HostPID:               p.Spec.HostPID,
		QOSClass:              o.Effective.QOSClass,
		Resources:             o.Effective.Pod,
		RequireLimits:         opt.RequireLimits,
		RemoveAtEnd:           opt.RemoveAtEnd,
		ReadinessGates:        readinessGates(p),
		HookReason:            p.Annotations[podutil.AnnotationHookReason] == "true",
		Sysctls:               sysctls(podSecurity(p)),
		Network:               podutil.NetworkMode(p),
		HostLoopback:          p.Annotations[podutil.AnnotationHostLoopback] == "true",
		ClusterServices:       p.Annotations[podutil.AnnotationClusterServices] == "true",
		Ports:                 podutil.PlanPorts(&p.Spec),
		FSGroup:               fsGroup(podSecurity(p)),
		Storage:               storageLimits(p),
		ServiceLinks:          *p.Spec.EnableServiceLinks,
	}
	if plan.Network == pod.NetworkHost {
		plan.Hostname, plan.Subdomain = podutil.CutHostname(opt.NodeName), ""
	}
	plan.LogMaxBytes, plan.LogMaxFiles = logLimits(p)
	plan.HostNames, plan.DNSServers = names(p)
	errs := &decode.Errors{}
	var err error
	vb := volumeBuilder{pod: p, limit: o.Effective.Pod.MemoryLimit, effective: o.Effective, allocatable: opt.Allocatable, images: images}
	if plan.Volumes, err = vb.volumes(); err != nil {
		o.Fail(errs, "spec.volumes", err.Error())
	}
	build := func(list string, containers []corev1.Container, resources []pod.Resources) []pod.Container {
		var built []pod.Container
		for i := range containers {
			b := builder{pod: p, c: &containers[i], hostname: plan.Hostname, effective: o.Effective, allocatable: opt.Allocatable, seccomp: opt.Seccomp}
			c, err := b.build(images)
			if err != nil {
				o.Fail(errs, fmt.Sprintf("spec.%s[%d]", list, i), err.Error())
				continue
			}
			c.Resources = resources[i]
			setOptions(p, c)
			if list == "containers" {
				c.Priority = launchPriority(p, i)
			}
			c.OOMScoreAdj = oomScoreAdj(p, b.c, opt.NodeMemory)
			built = append(built, *c)
		}
		return built
	}
	plan.InitContainers = build("initContainers", p.Spec.InitContainers, o.Effective.InitContainers)
	plan.Containers = build("containers", p.Spec.Containers, o.Effective.Containers)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	plan.OwnUserNS = slices.ContainsFunc(slices.Concat(plan.InitContainers, plan.Containers), hasExtraPrivileges)
	plan.OwnUserNS = plan.OwnUserNS || plan.HostPID // a pod that sees processes of other pods must not trace them
	if !ptr.Deref(p.Spec.HostUsers, true) {
		plan.OwnUserNS, plan.Users = true, &pod.IDRange{}
	}
	memoryQoS(p, plan, opt.Allocatable.Memory().Value())
	return plan, nil
}

func readinessGates(p *corev1.Pod) []string {
	var list []string
	for _, g := range p.Spec.ReadinessGates {
		list = append(list, string(g.ConditionType))
	}
	return list
}

func sysctls(sc *corev1.PodSecurityContext) map[string]string {
	if len(sc.Sysctls) == 0 {
		return nil
	}
	set := map[string]string{}
	for _, s := range sc.Sysctls {
		set[sysctl.NormalizeName(s.Name)] = s.Value
	}
	return set
}

// fsGroup returns the group that owns the volumes.
func fsGroup(sc *corev1.PodSecurityContext) *pod.Group {
	if sc.FSGroup == nil {
		return nil
	}
	return &pod.Group{ID: int(*sc.FSGroup), OnRootMismatch: ptr.Deref(sc.FSGroupChangePolicy, "") == corev1.FSGroupChangeOnRootMismatch}
}

// minNonZero returns the smallest of sizes, where 0 means none; or 0.
func minNonZero(sizes ...int64) int64 {
	sizes = slices.DeleteFunc(sizes, func(n int64) bool { return n == 0 })
	if len(sizes) == 0 {
		return 0
	}
	return slices.Min(sizes)
}
