package describe

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/printers"
)

func (p *page) containers(pod *corev1.Pod, title string, list []corev1.Container, statuses []corev1.ContainerStatus) {
	if len(list) == 0 {
		title += " " + none
	}
	p.row(0, title)
	for i := range list {
		c := &list[i]
		index := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		var status *corev1.ContainerStatus
		if index >= 0 {
			status = &statuses[index]
		}
		p.identity(c, status)
		p.lines(2, "Command:", c.Command)
		p.lines(2, "Args:", c.Args)
		if status != nil {
			p.containerState(status)
		}
		p.resources(2, &c.Resources)
		p.probe("Liveness:", c.LivenessProbe)
		p.probe("Readiness:", c.ReadinessProbe)
		p.probe("Startup:", c.StartupProbe)
		p.environment(pod, c)
		p.mounts(c)
	}
}

func (p *page) identity(c *corev1.Container, status *corev1.ContainerStatus) {
	p.row(1, c.Name+":")
	if status != nil {
		p.row(2, "Container ID:", status.ContainerID)
	}
	p.row(2, "Image:", c.Image)
	if status != nil {
		p.row(2, "Image ID:", status.ImageID)
	}
	p.ports("Port", c.Ports, func(port *corev1.ContainerPort) int32 { return port.ContainerPort })
	p.ports("Host Port", c.Ports, func(port *corev1.ContainerPort) int32 { return port.HostPort })
	if c.SecurityContext != nil {
		p.seccomp(2, 3, c.SecurityContext.SeccompProfile)
	}
}

func (p *page) ports(title string, ports []corev1.ContainerPort, number func(*corev1.ContainerPort) int32) {
	var out []string
	for i := range ports {
		text := fmt.Sprintf("%d/%s", number(&ports[i]), ports[i].Protocol)
		if ports[i].Name != "" {
			text += " (" + ports[i].Name + ")"
		}
		out = append(out, text)
	}
	switch len(out) {
	case 0:
		p.row(2, title+":", none)
	case 1:
		p.row(2, title+":", out[0])
	default:
		p.row(2, title+"s:", strings.Join(out, ", "))
	}
}

// containerState writes the state of the container's current run and of the previous one.
func (p *page) containerState(s *corev1.ContainerStatus) {
	p.state("State:", &s.State)
	if s.LastTerminationState.Terminated != nil {
		p.state("Last State:", &s.LastTerminationState)
	}
	p.row(2, "Ready:", printers.BoolColumn(s.Ready))
	p.row(2, "Restart Count:", fmt.Sprint(s.RestartCount))
}

// state writes a container's state. Unlike kubectl it also writes the message of a waiting container.
func (p *page) state(title string, s *corev1.ContainerState) {
	maybe := func(title, value string) {
		for line := range strings.SplitSeq(strings.TrimSpace(value), "\n") {
			if value != "" {
				p.row(3, title, line)
			}
			title = ""
		}
	}
	switch {
	case s.Running != nil:
		p.row(2, title, "Running")
		p.row(3, "Started:", stamp(s.Running.StartedAt))
	case s.Terminated != nil:
		p.row(2, title, "Terminated")
		maybe("Reason:", s.Terminated.Reason)
		maybe("Message:", s.Terminated.Message)
		p.row(3, "Exit Code:", fmt.Sprint(s.Terminated.ExitCode))
		if s.Terminated.Signal > 0 {
			p.row(3, "Signal:", fmt.Sprint(s.Terminated.Signal))
		}
		p.row(3, "Started:", stamp(s.Terminated.StartedAt))
		p.row(3, "Finished:", stamp(s.Terminated.FinishedAt))
	default:
		p.row(2, title, "Waiting")
		if s.Waiting != nil {
			maybe("Reason:", s.Waiting.Reason)
			maybe("Message:", s.Waiting.Message)
		}
	}
}

func (p *page) resources(level int, r *corev1.ResourceRequirements) {
	for _, of := range []struct {
		title string
		list  corev1.ResourceList
	}{{"Limits:", r.Limits}, {"Requests:", r.Requests}} {
		if len(of.list) > 0 {
			p.row(level, of.title)
		}
		for _, name := range slices.Sorted(maps.Keys(of.list)) {
			q := of.list[name]
			p.row(level+1, string(name)+":", q.String())
		}
	}
}

func (p *page) probe(title string, probe *corev1.Probe) {
	if probe == nil {
		return
	}
	p.row(2, title, fmt.Sprintf("%s delay=%ds timeout=%ds period=%ds successThreshold=%d failureThreshold=%d", probeText(&probe.ProbeHandler),
		probe.InitialDelaySeconds, probe.TimeoutSeconds, probe.PeriodSeconds, probe.SuccessThreshold, probe.FailureThreshold))
}

// probeText returns a description of a probe's action.
func probeText(h *corev1.ProbeHandler) string {
	switch {
	case h.Exec != nil:
		return fmt.Sprintf("exec %v", h.Exec.Command)
	case h.HTTPGet != nil:
		u := url.URL{Scheme: strings.ToLower(string(h.HTTPGet.Scheme)), Host: h.HTTPGet.Host, Path: h.HTTPGet.Path}
		if port := h.HTTPGet.Port.String(); port != "" {
			if strings.Contains(u.Host, ":") {
				u.Host = "[" + u.Host + "]"
			}
			u.Host += ":" + port
		}
		return "http-get " + u.String()
	case h.TCPSocket != nil:
		return fmt.Sprintf("tcp-socket %s:%s", h.TCPSocket.Host, h.TCPSocket.Port.String())
	case h.GRPC != nil:
		return fmt.Sprintf("grpc <pod>:%d %s", h.GRPC.Port, ptr.Deref(h.GRPC.Service, ""))
	}
	return "unknown"
}

func (p *page) mounts(c *corev1.Container) {
	if len(c.VolumeMounts) == 0 {
		p.row(2, "Mounts:", none)
		return
	}
	p.row(2, "Mounts:")
	mounts := slices.Clone(c.VolumeMounts)
	slices.SortStableFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, m := range mounts {
		flags := "rw"
		if m.ReadOnly {
			flags = "ro"
		}
		if m.SubPath != "" {
			flags += fmt.Sprintf(",path=%q", m.SubPath)
		}
		p.row(3, fmt.Sprintf("%s from %s (%s)", m.MountPath, m.Name, flags))
	}
}
