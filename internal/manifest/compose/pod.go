package compose

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// group puts every service into a pod: its own, or the pod of the service whose network it shares.
func (c *converter) group() {
	c.pods = map[string][]string{}
	for _, name := range c.startOrder() {
		if first := c.leader(name); first != "" {
			c.pods[first] = append(c.pods[first], name)
		}
	}
	for _, first := range slices.Sorted(maps.Keys(c.pods)) {
		for _, name := range c.pods[first] {
			if s := c.project.Services[name]; len(c.pods[first]) > 1 && len(podNames(s)) != 1 {
				c.refuse([]string{"services", name, "scale"}, "is refused: services that share a network run once")
			}
		}
	}
}

// startOrder returns the services so that each comes after those that it depends on. The library has refused cycles.
func (c *converter) startOrder() (order []string) {
	var visit func(name string)
	visit = func(name string) {
		s, active := c.project.Services[name]
		if !active || slices.Contains(order, name) {
			return
		}
		for _, other := range slices.Sorted(maps.Keys(s.DependsOn)) {
			visit(other)
		}
		order = append(order, name)
	}
	for _, name := range c.project.ServiceNames() {
		visit(name)
	}
	return order
}

// leader returns the service whose network a service has: itself, unless network_mode names another one; or "".
func (c *converter) leader(name string) string {
	for range len(c.project.Services) + 1 {
		s := c.project.Services[name]
		kind, other, _ := strings.Cut(s.NetworkMode, ":")
		switch {
		case kind == "container":
			joined := c.withContainerName(other)
			if joined == "" {
				c.refuse([]string{"services", name, "network_mode"}, "is refused: no service of the file has the container_name %s; a container of another project cannot share its network", other)
				return ""
			}
			name = joined
		case kind == "service":
			if _, active := c.project.Services[other]; !active {
				c.refuse([]string{"services", name, "network_mode"}, "is refused: the service %s is not active", other)
				return ""
			}
			name = other
		default:
			return name
		}
	}
	c.refuse([]string{"services", name, "network_mode"}, "is refused: the services share each other's network")
	return ""
}

// withContainerName returns the service that has a container_name, or "".
func (c *converter) withContainerName(container string) string {
	for _, name := range c.project.ServiceNames() {
		if c.project.Services[name].ContainerName == container {
			return name
		}
	}
	return ""
}

// joins reports whether a service shares the network of another one.
func joins(s types.ServiceConfig) bool {
	kind, _, _ := strings.Cut(s.NetworkMode, ":")
	return kind == "service" || kind == "container"
}

// podsOf returns the names of the pods in which a service runs.
func (c *converter) podsOf(name string) []string {
	return podNames(c.project.Services[c.firstOf(name)])
}

// firstOf returns the service that gives the pod of a service its name.
func (c *converter) firstOf(name string) string {
	for first, members := range c.pods {
		if slices.Contains(members, name) {
			return first
		}
	}
	return name
}

// podTemplate is what the services of a pod have in common.
type podTemplate struct {
	first       types.ServiceConfig
	members     []string
	spec        object
	podSecurity object
	annotations object
	setBy       map[string]string // the service that has set an annotation or a sysctl
	labels      map[string]string // of docker, which Kubernetes cannot hold
	volumes     []object
	containers  []object
	sysctls     []object
	after       []string       // what the pod waits for
	sync        []api.SyncRule // what podrun up --watch copies
}

// addPod makes the pods of a service and of those that share its network.
func (c *converter) addPod(first string) {
	config := c.project.Services[first]
	p := &podTemplate{first: config, members: c.pods[first], spec: object{}, podSecurity: object{}, annotations: object{}, setBy: map[string]string{}, labels: map[string]string{}}
	for _, name := range p.members {
		c.addContainer(p, c.project.Services[name])
	}
	p.annotations[annotationProject] = c.project.Name
	if len(p.labels) > 0 {
		text, _ := json.Marshal(p.labels) // of texts
		p.annotations[annotationLabels] = string(text)
	}
	if len(p.sync) > 0 {
		text, _ := json.Marshal(p.sync) // of texts
		p.annotations[annotationSync] = string(text)
	}
	if len(p.after) > 0 {
		p.annotations[annotationStartAfter] = strings.Join(p.after, ",")
	}
	p.podSecurity.set("sysctls", p.sysctls)
	p.spec.set("volumes", p.volumes)
	p.spec.set("securityContext", p.podSecurity)
	p.spec.set("containers", p.containers)
	labels := c.networkLabels(config)
	labels[api.LabelProject], labels[api.LabelService] = labelValue(c.project.Name), labelValue(first)
	for _, name := range podNames(config) {
		if other, taken := c.added["Pod/"+name]; taken && api.Label(first) != api.Label(other[1]) { // else claimNames has refused it
			c.refuse([]string{"services", first}, "is refused: its pod %s has the name of a pod of the service %s", name, other[1])
		}
		c.added["Pod/"+name] = []string{"services", first}
		meta := object{"name": name, "labels": labels}
		meta.set("annotations", p.annotations)
		c.objects = append(c.objects, object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": p.spec})
	}
}

// addContainer adds the container of a service to its pod.
func (c *converter) addContainer(p *podTemplate, config types.ServiceConfig) {
	s := &service{converter: c, ServiceConfig: config, podTemplate: p, security: object{}}
	s.container = object{"name": api.Label(config.Name), "image": config.Image}
	for _, part := range []func(){
		s.setLabels, s.setCommand, s.setEnvironment, s.setImage, s.setBuild, s.setUser, s.setCapabilities, s.setSecurityOptions, s.setRestart, s.setStop,
		s.setResources, s.setUlimits, s.setDevices, s.setLogging, s.setHealthcheck, s.setNamespaces, s.setNetwork, s.setPorts, s.setVolumes, s.setFiles, s.setDependencies, s.setWatch,
	} {
		part()
	}
	s.container.set("volumeMounts", s.mounts)
	s.container.set("securityContext", s.security)
	p.containers = append(p.containers, s.container)
}

// annotate sets an annotation of the pod, which the services of a pod have in common.
func (s *service) annotate(path []string, key, value string) {
	if other, set := s.annotations[key]; set && other != value {
		s.warn(path, "has no effect: the service %s, which has the same pod, sets it to %v", s.setBy[key], other)
		return
	}
	s.annotations[key] = value
	s.setBy[key] = s.Name
}

// setOption sets an option of the container by an annotation.
func (s *service) setOption(option, value string) {
	key := "podrun.dev/" + option
	if len(s.members) > 1 {
		key = fmt.Sprintf("%s.podrun.dev/%s", option, api.Label(s.Name))
	}
	s.annotations[key] = value
}

// ownPod reports whether the pod has the service's name, network and host name.
func (s *service) ownPod() bool { return s.first.Name == s.Name }

// refuseShared refuses an attribute of a service that shares another one's network, as docker does.
func (s *service) refuseShared(set bool, attribute string) {
	if set && !s.ownPod() {
		s.refuse(s.at(attribute), "is refused with network_mode: %s, as by docker: set it in the service %s", s.NetworkMode, s.first.Name)
	}
}
