package defaulting

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/manifest/podutil"
)

// SetDefaults fills in what the API server fills in when a Pod is created
// (pkg/apis/core/v1/defaults.go of Kubernetes), for the fields that podrun takes.
// It changes p. Doing it twice changes nothing more.
func SetDefaults(p *corev1.Pod) {
	SetDefaultsButPullPolicy(p)
	SetPullPolicies(&p.Spec)
}

// SetDefaultsButPullPolicy is Default without the pull policies of images: a loaded Pod keeps them as they
// were written, because an unset one is not the same as its default (see image.Unset).
func SetDefaultsButPullPolicy(p *corev1.Pod) {
	p.APIVersion, p.Kind = "v1", "Pod"
	if p.Namespace == "" {
		p.Namespace = corev1.NamespaceDefault
	}
	defaultSpec(&p.Spec)
	defaultVolumes(p.Spec.Volumes)
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			defaultContainer(&list[i])
		}
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

// SetHostPorts: in the host's network a port is the host's (API server:
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
