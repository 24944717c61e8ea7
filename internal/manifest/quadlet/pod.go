package quadlet

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/runpod"
)

// podUnit makes the Pod of a .pod file and of the .container files that name it.
func (p *parser) podUnit() {
	p.serviceName(podService(p.stem))
	for _, a := range p.q.all("Pod", "ExitPolicy") {
		if a.Value != "" && a.Value != "stop" {
			p.fail(a, "a Pod ends with its last container: use stop")
		}
	}
	pod := runpod.New(p.objectName("PodName"))
	name := p.stem + ".pod"
	var members []*parser
	var list []*runpod.Container
	for _, file := range p.set.members(name) {
		m, err := p.set.open(file)
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		m.unit.Service, m.unit.WhenRunning = p.unit.Service, true
		members, list = append(members, m), append(list, m.addContainer(pod))
	}
	if len(list) == 0 {
		p.errs = append(p.errs, fmt.Errorf("%s: no .container file beside it has Pod=%s: podrun runs the containers of a pod with it", p.path, name))
		return
	}
	p.options(list[0])
	p.networks(list[0])
	p.shared(list)
	p.userNamespace(pod)
	p.aliases(pod)
	for i, m := range members {
		p.member(m, list[i])
		p.errs = append(p.errs, m.errs...)
	}
	p.finish(pod)
}

// members returns the .container files of a .pod file, by name.
func (s *Set) members(pod string) (list []string) {
	for name, files := range s.Files {
		if filepath.Ext(name) != ".container" || strings.HasSuffix(name, "@.container") {
			continue
		}
		if q, err := parseAll(files); err == nil && q.last("Container", "Pod") == pod {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// shared sets the keys of the .pod file that every container of the pod gets.
func (p *parser) shared(list []*runpod.Container) {
	before := len(list[0].VolumeMounts)
	for _, a := range p.q.all("Pod", "Volume") {
		p.volume(list[0], a)
	}
	list[0].Share(list[0].VolumeMounts[before:])
	for _, a := range p.q.all("Pod", "ShmSize") {
		for _, c := range list {
			if a.Value != "" {
				p.set1(c, a, "shm-size", a.Value)
			}
		}
	}
}

// podOnly are the keys that set something of the whole Pod: the .pod file has them, no container of it.
var podOnly = []string{"AddHost", "DNS", "DNSOption", "DNSSearch", "HostName", "Network", "NetworkAlias", "PublishPort", "RemapUsers", "ServiceName", "UserNS"}

// memberKeys are the keys of a container's [Service] that the pod's unit does not get: podrun starts and restarts the
// containers of a pod at times of its own.
var memberKeys = []string{"RestartSec", "RestartSteps", "RestartMaxDelaySec", "TimeoutSec", "TimeoutStartSec", "TimeoutStopSec", "Environment", "Type"}

// restarts returns the policies of a container for values of Restart=.
func restarts() map[string]corev1.ContainerRestartPolicy {
	return map[string]corev1.ContainerRestartPolicy{
		"no": corev1.ContainerRestartPolicyNever, "always": corev1.ContainerRestartPolicyAlways, "on-failure": corev1.ContainerRestartPolicyOnFailure,
		"on-abnormal": corev1.ContainerRestartPolicyOnFailure, "on-abort": corev1.ContainerRestartPolicyOnFailure,
	}
}

// member adds the sections of a container of the pod to the pod's unit.
func (p *parser) member(m *parser, c *runpod.Container) {
	for _, key := range podOnly {
		for _, a := range m.q.all("Container", key) {
			if a.Value != "" {
				m.fail(a, "it is for the whole Pod: put it into %s", filepath.Base(p.path))
			}
		}
	}
	if m.unit.Quiet {
		p.unit.Quiet = true
	}
	if !m.unit.WhenRunning {
		p.unit.WhenRunning = false
	}
	if m.unit.LogMaxSize != "" {
		p.unit.LogMaxSize = m.unit.LogMaxSize
	}
	if len(m.unit.Reload) > 0 {
		p.unit.Reload = m.unit.Reload
	}
	for _, a := range m.q.sections["Unit"] {
		if line, keep := m.dependency(a); keep && slices.Contains(dependencies, a.Key) {
			p.add("Unit", line.String())
		}
	}
	for _, a := range m.q.sections["Install"] {
		p.add("Install", a.String())
	}
	for _, a := range m.q.sections["Service"] {
		policy, known := restarts()[a.Value]
		switch {
		case a.Key == "Restart" && known:
			c.RestartPolicy = &policy
		case a.Key == "Restart":
			m.fail(a, "use no, on-failure or always")
		case !slices.Contains(memberKeys, a.Key):
			m.fail(a, "the unit of %s runs the container: put it there", filepath.Base(p.path))
		}
	}
	for section := range m.q.sections {
		if !slices.Contains([]string{"Container", "Unit", "Service", "Install", "Quadlet"}, section) && !strings.HasPrefix(section, "X-") {
			m.errs = append(m.errs, errors.New(m.path+": podrun does not support section ["+section+"] in a .container file"))
		}
	}
}
