package defaulting

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// SetObjectDefaults sets the defaults that the API server sets when an object is created.
func SetObjectDefaults(object metav1.Object) {
	meta := apiutil.ObjectMeta(object)
	if meta.Namespace == "" {
		meta.Namespace = corev1.NamespaceDefault
	}
	switch o := object.(type) {
	case *corev1.Namespace:
		meta.Namespace = ""
		o.Status, o.Spec = corev1.NamespaceStatus{}, corev1.NamespaceSpec{}
	case *corev1.PersistentVolume:
		meta.Namespace = ""
		defaultPersistentVolume(o)
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
		for key, value := range o.StringData { // stringData has precedence
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{}
		if o.Spec.VolumeMode == nil {
			o.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
	case *corev1.Endpoints:
		for i := range o.Subsets {
			for j := range o.Subsets[i].Ports {
				if p := &o.Subsets[i].Ports[j]; p.Protocol == "" {
					p.Protocol = corev1.ProtocolTCP
				}
			}
		}
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			setDefault(&o.Ports[i].Name, "")
			setDefault(&o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *corev1.Service:
		o.Status = corev1.ServiceStatus{}
		defaultService(&o.Spec)
	case *networkingv1.NetworkPolicy:
		defaultNetworkPolicy(&o.Spec)
	}
}

// defaultNetworkPolicy sets the defaults of pkg/apis/networking/v1 of Kubernetes: without policyTypes a
// policy concerns ingress, and egress if it has rules for egress.
func defaultNetworkPolicy(s *networkingv1.NetworkPolicySpec) {
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	setProtocols := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			if ports[i].Protocol == nil {
				ports[i].Protocol = new(corev1.ProtocolTCP)
			}
		}
	}
	for i := range s.Ingress {
		setProtocols(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		setProtocols(s.Egress[i].Ports)
	}
}

// defaultPersistentVolume sets the defaults of SetDefaults_PersistentVolume, but no phase.
func defaultPersistentVolume(o *corev1.PersistentVolume) {
	o.Status = corev1.PersistentVolumeStatus{}
	s := &o.Spec
	if s.PersistentVolumeReclaimPolicy == "" {
		s.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if s.VolumeMode == nil {
		s.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	}
	if s.HostPath != nil && s.HostPath.Type == nil {
		s.HostPath.Type = new(corev1.HostPathUnset)
	}
}

func defaultService(s *corev1.ServiceSpec) {
	if s.Type == "" {
		s.Type = corev1.ServiceTypeClusterIP
	}
	if s.SessionAffinity == "" {
		s.SessionAffinity = corev1.ServiceAffinityNone
	}
	if c := s.SessionAffinityConfig; s.SessionAffinity == corev1.ServiceAffinityClientIP && (c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil) {
		s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)}}
	}
	if len(s.ClusterIPs) == 0 && s.ClusterIP != "" {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}
