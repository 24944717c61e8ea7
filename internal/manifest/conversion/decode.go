package conversion

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/pod"
)

// ToKubernetes converts a stored object to its Kubernetes form, for printing. The values of a Secret are
// included only if secrets is set. Otherwise they are replaced by their sizes, which are not valid base64,
// so that the output cannot be applied by mistake.
func ToKubernetes(o *pod.Object) (any, error) {
	meta := metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, GenerateName: o.GenerateName, UID: types.UID(o.UID), CreationTimestamp: metav1.NewTime(o.CreatedAt),
		Labels: o.Labels, Annotations: o.Annotations,
	}
	if o.Revision > 0 {
		meta.ResourceVersion = strconv.FormatInt(o.Revision, 10)
	}
	about := metav1.TypeMeta{APIVersion: "v1", Kind: string(o.Kind)}
	switch o.Kind {
	case pod.KindConfigMap:
		return &corev1.ConfigMap{TypeMeta: about, ObjectMeta: meta, Data: o.ConfigMap.Data, BinaryData: o.ConfigMap.BinaryData, Immutable: trueOrNil(o.ConfigMap.Immutable)}, nil
	case pod.KindSecret:
		return &corev1.Secret{TypeMeta: about, ObjectMeta: meta, Type: corev1.SecretType(o.Secret.Type), Data: o.Secret.Data, Immutable: trueOrNil(o.Secret.Immutable)}, nil
	case pod.KindClaim:
		c := &corev1.PersistentVolumeClaim{TypeMeta: about, ObjectMeta: meta}
		return c, claimToKubernetes(o, c)
	case pod.KindVolume:
		v := &corev1.PersistentVolume{TypeMeta: about, ObjectMeta: meta}
		return v, volumeToKubernetes(o, v)
	case pod.KindService:
		s := &corev1.Service{TypeMeta: about, ObjectMeta: meta}
		if err := decodeSpec(o, &s.Spec); err != nil {
			return nil, err
		}
		showAddresses(o.Service, &s.Spec)
		for i, p := range o.Service.Ports {
			s.Spec.Ports[i].NodePort = p.NodePort // podrun may have chosen it
		}
		return s, nil
	case pod.KindNamespace:
		n := &corev1.Namespace{TypeMeta: about, ObjectMeta: meta}
		n.Status.Phase = corev1.NamespaceActive
		return n, nil
	case pod.KindServiceAccount:
		a := &corev1.ServiceAccount{}
		if err := decodeSpec(o, a); err != nil {
			return nil, err
		}
		a.TypeMeta, a.ObjectMeta = about, meta
		return a, nil
	case pod.KindEndpoints:
		e := &corev1.Endpoints{}
		if err := decodeSpec(o, e); err != nil {
			return nil, err
		}
		e.TypeMeta, e.ObjectMeta = about, meta
		return e, nil
	case pod.KindEndpointSlice:
		e := &discoveryv1.EndpointSlice{}
		if err := decodeSpec(o, e); err != nil {
			return nil, err
		}
		about.APIVersion = discoveryv1.SchemeGroupVersion.String()
		e.TypeMeta, e.ObjectMeta = about, meta
		return e, nil
	case pod.KindNetworkPolicy:
		about.APIVersion = networkingv1.SchemeGroupVersion.String()
		n := &networkingv1.NetworkPolicy{TypeMeta: about, ObjectMeta: meta}
		if err := decodeSpec(o, &n.Spec); err != nil {
			return nil, err
		}
		return n, nil
	}
	return nil, fmt.Errorf("show %s %s: unknown kind", o.Kind, o.Name)
}

// showAddresses sets the addresses of a Service and their families, which podrun has chosen.
func showAddresses(from *pod.Service, s *corev1.ServiceSpec) {
	if s.ClusterIPs = from.ClusterIPs; len(s.ClusterIPs) > 0 {
		s.ClusterIP = s.ClusterIPs[0]
	}
	if len(from.Families) == 0 {
		return
	}
	s.IPFamilies = nil
	for _, f := range from.Families {
		s.IPFamilies = append(s.IPFamilies, corev1.IPFamily(f))
	}
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		if len(from.Families) > 1 {
			s.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
}

func trueOrNil(flag bool) *bool {
	if !flag {
		return nil
	}
	return &flag
}

func decodeSpec(o *pod.Object, spec any) error {
	if err := json.Unmarshal(o.Spec, spec); err != nil {
		return fmt.Errorf("decode %s %s: %w", o.Kind, o.Name, err)
	}
	return nil
}
