package conversion

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// FromKubernetes converts an object with its defaults to the stored form.
func FromKubernetes(object metav1.Object) *pod.Object {
	out := objectFromMeta(object)
	var spec any
	switch o := object.(type) {
	case *corev1.ConfigMap:
		out.Kind = pod.KindConfigMap
		out.ConfigMap = &pod.ConfigMap{Data: o.Data, BinaryData: o.BinaryData, Immutable: ptr.Deref(o.Immutable, false)}
	case *corev1.Secret:
		out.Kind = pod.KindSecret
		out.Secret = &pod.Secret{Type: string(o.Type), Data: o.Data, Immutable: ptr.Deref(o.Immutable, false)}
	case *corev1.PersistentVolumeClaim:
		out.Kind = pod.KindClaim
		out.Claim, spec = claimFromKubernetes(o), o.Spec
	case *corev1.PersistentVolume:
		out.Kind = pod.KindVolume
		out.PersistentVolume, spec = volumeFromKubernetes(o)
	case *corev1.Service:
		out.Kind = pod.KindService
		out.Service, spec = serviceFromKubernetes(&o.Spec), o.Spec
		if value, ok := o.Annotations[podutil.AnnotationNames]; ok {
			out.Service.Names, _ = podutil.ParseNames(value) // validation has checked it
		}
	case *corev1.Namespace:
		out.Kind = pod.KindNamespace
	case *corev1.ServiceAccount:
		out.Kind, out.ServiceAccount = pod.KindServiceAccount, &pod.ServiceAccount{}
		for _, s := range o.ImagePullSecrets {
			out.ServiceAccount.PullSecrets = append(out.ServiceAccount.PullSecrets, s.Name)
		}
		spec = &corev1.ServiceAccount{Secrets: o.Secrets, ImagePullSecrets: o.ImagePullSecrets, AutomountServiceAccountToken: o.AutomountServiceAccountToken}
	case *corev1.Endpoints:
		out.Kind, out.Endpoints = pod.KindEndpoints, endpointsFromKubernetes(o)
		spec = &corev1.Endpoints{Subsets: o.Subsets}
	case *discoveryv1.EndpointSlice:
		out.Kind, out.Endpoints = pod.KindEndpointSlice, endpointSliceFromKubernetes(o)
		spec = &discoveryv1.EndpointSlice{AddressType: o.AddressType, Endpoints: o.Endpoints, Ports: o.Ports}
	case *networkingv1.NetworkPolicy:
		out.Kind = pod.KindNetworkPolicy
		out.NetworkPolicy, spec = policyFromKubernetes(&o.Spec), o.Spec
	}
	if spec != nil {
		out.Spec, _ = json.Marshal(spec) // it came from JSON
	}
	return out
}

// objectFromMeta returns the stored form of an object's metadata.
func objectFromMeta(o metav1.Object) *pod.Object {
	return &pod.Object{Namespace: o.GetNamespace(), Name: o.GetName(), GenerateName: o.GetGenerateName(), Labels: maps.Clone(o.GetLabels()), Annotations: maps.Clone(o.GetAnnotations())}
}

func claimFromKubernetes(o *corev1.PersistentVolumeClaim) *pod.Claim {
	s := &o.Spec
	c := &pod.Claim{
		AccessModes: accessModes(s.AccessModes), Request: s.Resources.Requests.Storage().Value(),
		Class: s.StorageClassName, AttributesClass: ptr.Deref(s.VolumeAttributesClassName, ""), VolumeName: s.VolumeName,
	}
	if class, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		c.Class = &class
	}
	if s.Selector != nil {
		c.Selector = selectorFromKubernetes(s.Selector)
	}
	return c
}

func accessModes(modes []corev1.PersistentVolumeAccessMode) (list []string) {
	for _, m := range modes {
		list = append(list, string(m))
	}
	return list
}

func selectorFromKubernetes(s *metav1.LabelSelector) *pod.Selector {
	out := &pod.Selector{}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out.Requirements = append(out.Requirements, pod.Requirement{Key: key, Operator: string(metav1.LabelSelectorOpIn), Values: []string{s.MatchLabels[key]}})
	}
	for _, r := range s.MatchExpressions {
		out.Requirements = append(out.Requirements, pod.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	return out
}

// serviceFamilies returns the IP families of a Service, as an API server chooses them in a cluster whose first family is
// IPv4 and that has both (initIPFamilyFields in pkg/registry/core/service/storage of Kubernetes).
func serviceFamilies(s *corev1.ServiceSpec) (families []string) {
	if s.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	for _, f := range s.IPFamilies {
		families = append(families, string(f))
	}
	for _, ip := range s.ClusterIPs {
		family := pod.IPv4
		if strings.Contains(ip, ":") {
			family = pod.IPv6
		}
		if ip != corev1.ClusterIPNone && !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	headlessWithoutSelector := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0 && len(families) == 0
	if len(families) == 0 {
		families = []string{pod.IPv4}
	}
	dual := s.IPFamilyPolicy != nil && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack || s.IPFamilyPolicy == nil && headlessWithoutSelector
	if dual && len(families) == 1 {
		other := map[string]string{pod.IPv4: pod.IPv6, pod.IPv6: pod.IPv4}
		families = append(families, other[families[0]])
	}
	return families
}

func serviceFromKubernetes(s *corev1.ServiceSpec) *pod.Service {
	out := &pod.Service{
		Type: pod.ServiceType(s.Type), Selector: s.Selector, ExternalName: s.ExternalName,
		ClusterIPs: s.ClusterIPs, Families: serviceFamilies(s), PublishNotReady: s.PublishNotReadyAddresses,
	}
	if s.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.AffinitySeconds = corev1.DefaultClientIPServiceAffinitySeconds
		if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil { // as defaults are
			out.AffinitySeconds = *c.ClientIP.TimeoutSeconds
		}
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
