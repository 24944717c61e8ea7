package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/pod"
)

// labelsOf says which SELinux label containers have here that ask for none.
func labelsOf(has host.SELinux) host.Finding {
	if !has.Enabled {
		return host.Finding{Level: host.OK, Detail: "it is not in use here: nothing has labels"}
	}
	l := &labelling{plan: &pod.Plan{}, has: has}
	process, _, err := l.find(corev1.SELinuxOptions{}, false)
	if err != nil {
		return host.Finding{Level: host.Note, Detail: "containers keep the label of the user's programs: " + err.Error(),
			Cure: "install the policy for containers (the package container-selinux, where there is one), and log in again"}
	}
	parts := strings.SplitN(process, ":", 4) // the last is a pod's own
	detail := "containers have the label " + strings.Join(parts[:min(3, len(parts))], ":") + ", with categories of their pod"
	if has.Enforcing {
		detail += "; the policy is enforced"
	} else {
		detail += "; the policy is permissive, so nothing is enforced"
	}
	return host.Finding{Level: host.OK, Detail: detail}
}
