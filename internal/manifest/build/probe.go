package build

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// probe builds one of the container's probes. Its command is expanded with the variables to which the
// manifest gives a literal value (kubelet: ExpandContainerCommandOnlyStatic).
func (b *builder) probe(p *corev1.Probe) *pod.Probe {
	if p == nil {
		return nil
	}
	out := &pod.Probe{
		Handler:             b.handler(p.Exec, p.HTTPGet),
		InitialDelaySeconds: int64(p.InitialDelaySeconds),
		PeriodSeconds:       int64(p.PeriodSeconds),
		TimeoutSeconds:      int64(p.TimeoutSeconds),
		SuccessThreshold:    int(p.SuccessThreshold),
		FailureThreshold:    int(p.FailureThreshold),
		GraceSeconds:        p.TerminationGracePeriodSeconds,
	}
	if p.Exec != nil {
		vars := map[string]string{}
		for _, e := range b.c.Env {
			vars[e.Name] = e.Value
		}
		out.Exec = environ.ExpandAll(p.Exec.Command, vars)
	}
	if t := p.TCPSocket; t != nil {
		out.TCP = &pod.TCPSocket{Host: t.Host, Port: b.port(t.Port)}
	}
	if g := p.GRPC; g != nil {
		out.GRPC = &pod.GRPC{Port: int(g.Port), Service: ptr.Deref(g.Service, ""), TLS: ptr.Deref(g.Mode, "") == corev1.GRPCProbeModeTLS}
	}
	return out
}

// lifecycle returns the container's own lifecycle, never nil.
func (b *builder) lifecycle() *corev1.Lifecycle {
	return cmp.Or(b.c.Lifecycle, &corev1.Lifecycle{})
}

// hook builds one of the container's hooks.
func (b *builder) hook(h *corev1.LifecycleHandler) *pod.Handler {
	if h == nil {
		return nil
	}
	out := b.handler(h.Exec, h.HTTPGet)
	if h.Sleep != nil {
		out.SleepSeconds = new(h.Sleep.Seconds)
	}
	return &out
}

// handler builds the common part of probes and hooks.
func (b *builder) handler(exec *corev1.ExecAction, get *corev1.HTTPGetAction) pod.Handler {
	var h pod.Handler
	if exec != nil {
		h.Exec = exec.Command
	}
	if get != nil {
		h.HTTP = &pod.HTTPGet{
			TLS: get.Scheme == corev1.URISchemeHTTPS, Host: get.Host, Port: b.port(get.Port), Path: get.Path,
			HTTP2: ptr.Deref(get.Protocol, "") == corev1.HTTPProtocolHTTP2,
		}
		for _, header := range get.HTTPHeaders {
			h.HTTP.Headers = append(h.HTTP.Headers, pod.Header{Name: header.Name, Value: header.Value})
		}
	}
	return h
}

// port resolves a port that may be given by name.
func (b *builder) port(p intstr.IntOrString) int {
	n, _ := podutil.ResolveContainerPort(b.c, p) // validation has refused unknown names
	return n
}

// restart returns a container's own policy and rules. The policy of a sidecar is "": being a sidecar implies
// it.
func (b *builder) restart() (pod.RestartPolicy, []pod.RestartRule) {
	if b.c.RestartPolicy == nil {
		return "", nil
	}
	var rules []pod.RestartRule
	for _, r := range b.c.RestartPolicyRules {
		rule := pod.RestartRule{
			NotIn: r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn,
			All:   r.Action == corev1.ContainerRestartRuleActionRestartAllContainers,
		}
		for _, code := range r.ExitCodes.Values {
			rule.ExitCodes = append(rule.ExitCodes, int(code))
		}
		rules = append(rules, rule)
	}
	if podutil.IsSidecarOf(b.pod, b.c) {
		return "", rules
	}
	return pod.RestartPolicy(*b.c.RestartPolicy), rules
}
