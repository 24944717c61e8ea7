package environ

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// Services returns the variables with the addresses of a namespace's Services: FOO_SERVICE_HOST and
// the like, and the variables of Docker's links (kubelet: pkg/kubelet/envvars). A Service without an
// address has none.
func Services(services []*pod.Object) map[string]string {
	vars := map[string]string{}
	for _, o := range services {
		s := o.Service
		if s == nil || s.Type == pod.ServiceExternalName || s.Headless() || len(s.ClusterIPs) == 0 || len(s.Ports) == 0 {
			continue
		}
		host, prefix := s.ClusterIPs[0], variable(o.Name)
		vars[prefix+"_SERVICE_HOST"] = host
		vars[prefix+"_SERVICE_PORT"] = strconv.Itoa(int(s.Ports[0].Port))
		for i, p := range s.Ports {
			number, proto := strconv.Itoa(int(p.Port)), strings.ToLower(p.Protocol)
			if p.Name != "" {
				vars[prefix+"_SERVICE_PORT_"+variable(p.Name)] = number
			}
			url := fmt.Sprintf("%s://%s:%s", proto, bracketed(host), number)
			if i == 0 {
				vars[prefix+"_PORT"] = url
			}
			link := fmt.Sprintf("%s_PORT_%s_%s", prefix, number, strings.ToUpper(proto))
			vars[link] = url
			vars[link+"_PROTO"] = proto
			vars[link+"_PORT"] = number
			vars[link+"_ADDR"] = host
		}
	}
	return vars
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
