package manifest

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// metaOf gives the metadata of an object of the machine.
func metaOf(object metav1.Object) *metav1.ObjectMeta {
	return object.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// DefaultObject fills in what the API server fills in when an object is created.
func DefaultObject(object metav1.Object) {
	meta := metaOf(object)
	if meta.Namespace == "" {
		meta.Namespace = corev1.NamespaceDefault
	}
	switch o := object.(type) {
	case *corev1.Namespace:
		meta.Namespace = ""
		o.Status, o.Spec = corev1.NamespaceStatus{}, corev1.NamespaceSpec{}
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
		for key, value := range o.StringData { // it wins
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
	case *corev1.Service:
		o.Status = corev1.ServiceStatus{}
		defaultService(&o.Spec)
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

// stored is an object with its defaults as it is kept.
func stored(object metav1.Object) *pod.Object {
	meta := metaOf(object)
	out := &pod.Object{Namespace: meta.Namespace, Name: meta.Name, Labels: maps.Clone(meta.Labels), Annotations: maps.Clone(meta.Annotations)}
	var spec any
	switch o := object.(type) {
	case *corev1.ConfigMap:
		out.Kind = pod.KindConfigMap
		out.ConfigMap = &pod.ConfigMap{Data: o.Data, BinaryData: o.BinaryData, Immutable: is(o.Immutable)}
	case *corev1.Secret:
		out.Kind = pod.KindSecret
		out.Secret = &pod.Secret{Type: string(o.Type), Data: o.Data, Immutable: is(o.Immutable)}
	case *corev1.PersistentVolumeClaim:
		out.Kind = pod.KindClaim
		out.Claim, spec = storedClaim(&o.Spec), o.Spec
	case *corev1.Service:
		out.Kind = pod.KindService
		out.Service, spec = storedService(&o.Spec), o.Spec
	case *corev1.Namespace:
		out.Kind = pod.KindNamespace
	}
	if spec != nil {
		out.Spec, _ = json.Marshal(spec) // it came from JSON
	}
	return out
}

func storedClaim(s *corev1.PersistentVolumeClaimSpec) *pod.Claim {
	c := &pod.Claim{}
	for _, m := range s.AccessModes {
		c.AccessModes = append(c.AccessModes, string(m))
	}
	if q, ok := s.Resources.Requests[corev1.ResourceStorage]; ok {
		c.Request = q.Value()
	}
	return c
}

func storedService(s *corev1.ServiceSpec) *pod.Service {
	out := &pod.Service{
		Type: pod.ServiceType(s.Type), Selector: s.Selector, ExternalName: s.ExternalName,
		ClusterIPs: s.ClusterIPs, PublishNotReady: s.PublishNotReadyAddresses,
	}
	if s.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.AffinitySeconds = *s.SessionAffinityConfig.ClientIP.TimeoutSeconds
	}
	for _, p := range s.Ports {
		port := pod.ServicePort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort}
		if p.TargetPort.Type == intstr.String {
			port.TargetName = p.TargetPort.StrVal
		} else {
			port.TargetPort = p.TargetPort.IntVal
		}
		out.Ports = append(out.Ports, port)
	}
	return out
}

// ValidateObject checks an object with its defaults as the API server checks one that is
// created, in its words.
func ValidateObject(object metav1.Object) field.ErrorList {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return validateConfigMap(o)
	case *corev1.Secret:
		return validateSecret(o)
	case *corev1.PersistentVolumeClaim:
		return validateClaim(o)
	case *corev1.Service:
		return validateService(o)
	}
	return validateNamespace(object)
}
