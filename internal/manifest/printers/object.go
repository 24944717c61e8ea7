package printers

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
)

// ObjectHeader returns kubectl's columns for a kind of stored object (printers of
// pkg/printers/internalversion of Kubernetes), without the namespace.
func ObjectHeader(kind pod.ObjectKind, wide bool) []string {
	switch kind {
	case pod.KindConfigMap:
		return []string{"NAME", "DATA", "AGE"}
	case pod.KindSecret:
		return []string{"NAME", "TYPE", "DATA", "AGE"}
	case pod.KindClaim:
		return volumeMode([]string{"NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "AGE"}, wide, "VOLUMEMODE")
	case pod.KindVolume:
		return volumeMode([]string{"NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "REASON", "AGE"}, wide, "VOLUMEMODE")
	case pod.KindService:
		head := []string{"NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"}
		if wide {
			head = append(head, "SELECTOR")
		}
		return head
	case pod.KindEndpoints:
		return []string{"NAME", "ENDPOINTS", "AGE"}
	case pod.KindEndpointSlice:
		return []string{"NAME", "ADDRESSTYPE", "PORTS", "ENDPOINTS", "AGE"}
	case pod.KindServiceAccount:
		return []string{"NAME", "AGE"}
	case pod.KindNetworkPolicy:
		return []string{"NAME", "POD-SELECTOR", "AGE"}
	}
	return []string{"NAME", "STATUS", "AGE"}
}

// ObjectRow returns an object's line under ObjectHeader.
func ObjectRow(o *pod.Object, wide bool, now time.Time) []string {
	old := podrow.Age(o.CreatedAt, now)
	switch {
	case o.ConfigMap != nil:
		return []string{o.Name, strconv.Itoa(len(o.ConfigMap.Data) + len(o.ConfigMap.BinaryData)), old}
	case o.Secret != nil:
		return []string{o.Name, o.Secret.Type, strconv.Itoa(len(o.Secret.Data)), old}
	case o.Claim != nil:
		return volumeMode(claimRow(o, old), wide, string(corev1.PersistentVolumeFilesystem))
	case o.PersistentVolume != nil:
		return volumeMode(volumeRow(o, old), wide, string(corev1.PersistentVolumeFilesystem))
	case o.Service != nil:
		row := []string{o.Name, string(o.Service.Type), clusterIP(o.Service), externalIP(o.Service), servicePorts(o.Service), old}
		if wide {
			row = append(row, selector(o.Service.Selector))
		}
		return row
	case o.Kind == pod.KindEndpoints:
		return []string{o.Name, firstOf(endpointTexts(o.Endpoints)), old}
	case o.Kind == pod.KindEndpointSlice:
		family, addresses, ports := endpointSliceColumns(o.Endpoints)
		return []string{o.Name, family, ports, addresses, old}
	case o.ServiceAccount != nil:
		return []string{o.Name, old}
	case o.NetworkPolicy != nil:
		return []string{o.Name, podSelector(o), old}
	}
	return []string{o.Name, string(corev1.NamespaceActive), old}
}

// claimRow returns the row of a claim. A claim with a directory has no VOLUME: no PersistentVolume exists for it.
func claimRow(o *pod.Object, age string) []string {
	c := o.Claim
	status, volume, capacity, modes := corev1.ClaimPending, "", "", ""
	if c.Bound {
		status, capacity, modes = corev1.ClaimBound, quantity(c.Request), accessModes(c.AccessModes)
	}
	if v := c.Volume; v != nil {
		volume, capacity, modes = v.Name, quantity(v.PersistentVolume.Capacity), accessModes(v.PersistentVolume.AccessModes)
	}
	return []string{o.Name, string(status), volume, capacity, modes, ptr.Deref(c.Class, ""), cmp.Or(c.AttributesClass, unset), age}
}

func volumeRow(o *pod.Object, age string) []string {
	v, claim := o.PersistentVolume, ""
	if v.Claim != nil {
		claim = v.Claim.Namespace + "/" + v.Claim.Name
	}
	return []string{o.Name, quantity(v.Capacity), accessModes(v.AccessModes), v.ReclaimPolicy, string(v.Phase), claim, v.Class, cmp.Or(v.AttributesClass, unset), "", age}
}

const unset = "<unset>"

func quantity(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// volumeMode adds the last column of wide tables.
func volumeMode(row []string, wide bool, mode string) []string {
	if wide {
		row = append(row, mode)
	}
	return row
}

func accessModes(modes []string) string {
	short := map[string]string{"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
	var list []string
	for _, m := range modes {
		list = append(list, short[m])
	}
	return strings.Join(list, ",")
}

func clusterIP(s *pod.Service) string {
	if len(s.ClusterIPs) == 0 {
		return ""
	}
	return s.ClusterIPs[0]
}

// externalIP returns the name of an ExternalName Service. The address of a LoadBalancer stays pending:
// nothing assigns one.
func externalIP(s *pod.Service) string {
	if s.Type == pod.ServiceLoadBalancer {
		return "<pending>"
	}
	return s.ExternalName
}

func servicePorts(s *pod.Service) string {
	var list []string
	for _, p := range s.Ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		list = append(list, text)
	}
	return strings.Join(list, ",")
}

// endpointTexts returns the ready addresses of an Endpoints object with their ports.
func endpointTexts(e *pod.Endpoints) (list []string) {
	for _, a := range e.List {
		if a.NotReady {
			continue
		}
		if len(a.Ports) == 0 {
			list = append(list, a.Address)
		}
		for _, p := range a.Ports {
			ip, _ := netip.ParseAddr(a.Address) // it was validated
			list = append(list, netip.AddrPortFrom(ip, uint16(p.Port)).String())
		}
	}
	return list
}

func endpointSliceColumns(e *pod.Endpoints) (family, addresses, ports string) {
	family = "IPv4"
	var texts, numbers []string
	for i, a := range e.List {
		if strings.Contains(a.Address, ":") {
			family = "IPv6"
		}
		texts = append(texts, a.Address)
		for _, p := range a.Ports {
			if i == 0 {
				numbers = append(numbers, strconv.Itoa(int(p.Port)))
			}
		}
	}
	return family, firstOf(texts), cmp.Or(strings.Join(numbers, ","), "<unset>")
}

// firstOf returns the first entries of a list as kubectl prints endpoints.
func firstOf(list []string) string {
	const most = 3
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:most], ","), more)
	}
	return cmp.Or(strings.Join(list, ","), "<none>")
}

func selector(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, ",")
}

// podSelector returns a NetworkPolicy's selector as kubectl prints it.
func podSelector(o *pod.Object) string {
	value, err := conversion.ToKubernetes(o)
	if n, ok := value.(*networkingv1.NetworkPolicy); ok && err == nil {
		return metav1.FormatLabelSelector(&n.Spec.PodSelector)
	}
	return "<unknown>" // a damaged object
}
