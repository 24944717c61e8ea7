package manifest

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
)

// ParsePublishedPort parses [IP:]HOSTPORT:PORT[/PROTOCOL], where both ports may be ranges of the same length.
func ParsePublishedPort(text string) (podutil.PublishedPort, error) {
	p, err := podutil.ParsePublishedPort(text)
	if err == nil && p.HostPort == 0 {
		err = errors.New("podrun does not choose a host port: write HOSTPORT:PORT")
	}
	return p, err
}

// Publish sets the ports of the host for ports of the pods that Load returned, instead of their hostPorts. A port
// that no container lists is added to the first container of the only pod.
func Publish(pods []Object, ports []podutil.PublishedPort) error {
	var errs []error
	for _, p := range ports {
		if p.HostIP == "0.0.0.0" { // with podman it stands for all addresses
			p.HostIP = ""
		}
		for _, port := range p.Ports() {
			if publishListed(pods, port) {
				continue
			}
			if len(pods) != 1 {
				errs = append(errs, fmt.Errorf("no container of the %d pods lists the port %d/%s: add it to the ports of the one that has it", len(pods), port.ContainerPort, strings.ToLower(string(port.Protocol))))
				continue
			}
			c := &pods[0].Pod.Spec.Containers[0]
			c.Ports = append(c.Ports, port)
		}
	}
	if len(ports) == 0 {
		return nil
	}
	invalid := &Errors{}
	for i := range pods {
		for _, bad := range validation.ValidatePod(pods[i].Pod) {
			pods[i].Fail(invalid, bad.Field, bad.ErrorBody())
		}
	}
	return errors.Join(append(errs, invalid.Err())...)
}

// publishListed publishes a port of the containers that list it.
func publishListed(pods []Object, port corev1.ContainerPort) (found bool) {
	for i := range pods {
		spec := &pods[i].Pod.Spec
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for j := range list {
				for k := range list[j].Ports {
					if has := &list[j].Ports[k]; has.ContainerPort == port.ContainerPort && has.Protocol == port.Protocol {
						has.HostPort, has.HostIP, found = port.HostPort, port.HostIP, true
					}
				}
			}
		}
	}
	return found
}
