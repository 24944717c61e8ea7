package defaulting

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// SetDefaults sets the defaults that the API server sets when a Pod is created (pkg/apis/core/v1/defaults.go
// of Kubernetes), for the fields that podrun supports. It changes p. It is idempotent.
func SetDefaults(p *corev1.Pod) {
	SetDefaultsButPullPolicy(p)
	SetPullPolicies(&p.Spec)
}

// SetDefaultsButPullPolicy is SetDefaults without the pull policies of images: a loaded Pod keeps them as
// written, because an unset policy differs from its default (see image.Unset).
func SetDefaultsButPullPolicy(p *corev1.Pod) {
	p.APIVersion, p.Kind = "v1", "Pod"
	if p.Namespace == "" {
		p.Namespace = corev1.NamespaceDefault
	}
	defaultSpec(&p.Spec)
	defaultVolumes(p.Spec.Volumes)
	for c := range podutil.Containers(&p.Spec) {
		defaultContainer(c)
	}
	for i := range p.Spec.EphemeralContainers {
		defaultContainer((*corev1.Container)(&p.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	SetHostPorts(p)
	defaultPodResources(p)
}

func defaultSpec(s *corev1.PodSpec) {
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	if s.DNSPolicy == "" {
		s.DNSPolicy = corev1.DNSClusterFirst
	}
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	if s.EnableServiceLinks == nil {
		s.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
}

// SetHostPorts sets the host ports of a pod in the host's network to its container ports (API server:
// setDefaultHostNetworkPorts).
func SetHostPorts(p *corev1.Pod) {
	if !podutil.IsHostNetwork(p) {
		return
	}
	podutil.VisitPorts(&p.Spec, nil, func(_ *corev1.Container, p *corev1.ContainerPort, _ bool, _ *field.Path) {
		if p.HostPort == 0 {
			p.HostPort = p.ContainerPort
		}
	})
}
