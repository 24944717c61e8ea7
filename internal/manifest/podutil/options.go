package podutil

import corev1 "k8s.io/api/core/v1"

// The options of containers that docker has and Kubernetes has no field for.
const (
	OptionUlimits     = "ulimits"
	OptionUser        = "user"
	OptionGroups      = "groups"
	OptionMaxRestarts = "max-restarts"
)

// Annotations of the Pod.
const (
	AnnotationHostNames  = "podrun.dev/host-names"
	AnnotationDNSServers = "podrun.dev/dns-servers"
	AnnotationNetSysctls = "podrun.dev/net-sysctls"
	AnnotationLabels     = "podrun.dev/labels"
)

// CheckContainerOption checks the value of an option.
func CheckContainerOption(option, value string) (err error) { return nil }

// ContainerOption returns the value of an option for a container, or "".
func ContainerOption(p *corev1.Pod, option, container string) string { return "" }
