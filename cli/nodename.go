package cli

import (
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nodeName is the machine's name as a kubelet has it; "" for one that no node can have.
func nodeName() string {
	name, err := os.Hostname()
	name = strings.ToLower(name)
	if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// placeOnNode gives a pod that is shown the name of its node, as a scheduler does.
func placeOnNode(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		p.Spec.NodeName = nodeName()
	}
}

// takeFromNode is the reverse for a manifest that is read: it may be of a pod that was shown.
func takeFromNode(p *corev1.Pod) {
	if p.Spec.NodeName == nodeName() {
		p.Spec.NodeName = ""
	}
}
