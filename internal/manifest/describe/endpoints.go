package describe

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func (p *page) endpoints(o *corev1.Endpoints) {
	p.nameAndNamespace(o)
	p.labelsAndAnnotations(o)
	p.row(0, "Subsets:")
	for _, s := range o.Subsets {
		p.row(1, "Addresses:", addressList(s.Addresses))
		p.row(1, "NotReadyAddresses:", addressList(s.NotReadyAddresses))
		var rows [][3]string
		for _, port := range s.Ports {
			rows = append(rows, [3]string{port.Name, fmt.Sprint(port.Port), string(port.Protocol)})
		}
		p.endpointPorts(1, rows)
	}
}

func addressList(list []corev1.EndpointAddress) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.IP)
	}
	return cmp.Or(strings.Join(texts, ","), none)
}

// endpointPorts writes ports: name, number and protocol.
func (p *page) endpointPorts(level int, rows [][3]string) {
	if len(rows) == 0 {
		return
	}
	p.row(level, "Ports:")
	p.row(level+1, "Name", "Port", "Protocol")
	p.row(level+1, "----", "----", "--------")
	for _, r := range rows {
		p.row(level+1, cmp.Or(r[0], "<unset>"), r[1], r[2])
	}
}

func (p *page) endpointSlice(o *discoveryv1.EndpointSlice) {
	p.nameAndNamespace(o)
	p.labelsAndAnnotations(o)
	p.row(0, "AddressType:", string(o.AddressType))
	var rows [][3]string
	for _, port := range o.Ports {
		rows = append(rows, [3]string{ptr.Deref(port.Name, ""), fmt.Sprint(ptr.Deref(port.Port, 0)), string(ptr.Deref(port.Protocol, ""))})
	}
	p.endpointPorts(0, rows)
	p.row(0, "Endpoints:")
	for _, e := range o.Endpoints {
		p.row(1, "- Addresses:", strings.Join(e.Addresses, ","))
		p.row(2, "Conditions:")
		ready := "<unset>"
		if e.Conditions.Ready != nil {
			ready = fmt.Sprint(*e.Conditions.Ready)
		}
		p.row(3, "Ready:", ready)
		p.row(2, "Hostname:", ptr.Deref(e.Hostname, "<unset>"))
	}
}
