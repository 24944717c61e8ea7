package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	labelutil "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func (p *page) configMap(c *corev1.ConfigMap) {
	p.nameAndNamespace(c)
	p.labelsAndAnnotations(c)
	p.heading("Data")
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		p.row(0, key+":")
		p.row(0, "----")
		for _, line := range strings.Split(c.Data[key], "\n") {
			p.row(0, line)
		}
		p.row(0)
	}
	p.heading("BinaryData")
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		p.row(0, fmt.Sprintf("%s: %d bytes", key, len(c.BinaryData[key])))
	}
	p.row(0)
}

func (p *page) heading(title string) {
	p.row(0)
	p.row(0, title)
	p.row(0, "====")
}

// secret writes a Secret's page. It never writes a value.
func (p *page) secret(s *corev1.Secret) {
	p.nameAndNamespace(s)
	p.labelsAndAnnotations(s)
	p.row(0)
	p.row(0, "Type:", string(s.Type))
	p.heading("Data")
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		p.row(0, key+":", fmt.Sprintf("%d bytes", len(s.Data[key])))
	}
}

func (p *page) service(s *corev1.Service, endpoints map[string][]string) {
	p.nameAndNamespace(s)
	p.labelsAndAnnotations(s)
	p.row(0, "Selector:", labelutil.FormatLabels(s.Spec.Selector))
	p.row(0, "Type:", string(s.Spec.Type))
	rowIfSet(p, 0, "IP Family Policy:", s.Spec.IPFamilyPolicy, "%s")
	families := make([]string, len(s.Spec.IPFamilies))
	for i, f := range s.Spec.IPFamilies {
		families[i] = string(f)
	}
	p.row(0, "IP Families:", cmp.Or(strings.Join(families, ","), none))
	p.row(0, "IP:", s.Spec.ClusterIP)
	p.row(0, "IPs:", cmp.Or(strings.Join(s.Spec.ClusterIPs, ","), none))
	p.maybe("External IPs:", strings.Join(s.Spec.ExternalIPs, ","))
	p.maybe("External Name:", s.Spec.ExternalName)
	for i := range s.Spec.Ports {
		p.servicePort(&s.Spec.Ports[i], endpoints)
	}
	p.row(0, "Session Affinity:", string(s.Spec.SessionAffinity))
	p.maybe("External Traffic Policy:", string(s.Spec.ExternalTrafficPolicy))
	rowIfSet(p, 0, "Internal Traffic Policy:", s.Spec.InternalTrafficPolicy, "%s")
	rowIfSet(p, 0, "Traffic Distribution:", s.Spec.TrafficDistribution, "%s")
}

func (p *page) servicePort(port *corev1.ServicePort, endpoints map[string][]string) {
	name := cmp.Or(port.Name, "<unset>")
	p.row(0, "Port:", name, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
	p.row(0, "TargetPort:", fmt.Sprintf("%s/%s", port.TargetPort.String(), port.Protocol))
	rowIfSet(p, 0, "AppProtocol:", port.AppProtocol, "%s")
	if port.NodePort != 0 {
		p.row(0, "NodePort:", name, fmt.Sprintf("%d/%s", port.NodePort, port.Protocol))
	}
	p.row(0, "Endpoints:", firstEndpoints(endpoints[port.Name]))
}

// shownEndpoints is how many endpoints are printed.
const shownEndpoints = 3

// firstEndpoints returns the first endpoints of a list.
func firstEndpoints(list []string) string {
	text := strings.Join(list[:min(shownEndpoints, len(list))], ",")
	if more := len(list) - shownEndpoints; more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}

func (p *page) claim(c *corev1.PersistentVolumeClaim, pods []corev1.Pod) {
	p.nameAndNamespace(c)
	p.row(0, "StorageClass:", storageClass(c))
	p.row(0, "Status:", string(c.Status.Phase))
	p.row(0, "Volume:", c.Spec.VolumeName)
	p.labelsAndAnnotations(c)
	p.row(0, "Finalizers:", fmt.Sprint(c.Finalizers))
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		q := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = q.String(), accessModes(c.Status.AccessModes)
	}
	p.row(0, "Capacity:", capacity)
	p.row(0, "Access Modes:", modes)
	rowIfSet(p, 0, "VolumeMode:", c.Spec.VolumeMode, "%s")
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	p.list("Used By:", names)
}

func storageClass(c *corev1.PersistentVolumeClaim) string {
	if name, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return ptr.Deref(c.Spec.StorageClassName, "")
}

// accessModes returns each mode once, in kubectl's order and letters.
func accessModes(has []corev1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		text string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(has, m.mode) {
			out = append(out, m.text)
		}
	}
	return strings.Join(out, ",")
}
