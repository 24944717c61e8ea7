package oracle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// asked gives a container probes, hooks and a restart policy of its own.
func (d draw) asked(c *corev1.Container) {
	if d.rarely() {
		c.LivenessProbe = d.probe()
	}
	if d.rarely() {
		c.ReadinessProbe = d.probe()
	}
	if d.rarely() {
		c.StartupProbe = d.probe()
	}
	if d.rarely() {
		c.Lifecycle = &corev1.Lifecycle{}
		if d.maybe() {
			c.Lifecycle.PostStart = d.hook()
		}
		if d.maybe() {
			c.Lifecycle.PreStop = d.hook()
		}
		if d.rarely() {
			c.Lifecycle.StopSignal = new(corev1.Signal(d.one("SIGTERM", "SIGRTMAX-14", "SIGRTMAX-15", "SIGRTMIN+15", "TERM", "")))
		}
	}
	if d.rarely() {
		c.RestartPolicy = new(corev1.ContainerRestartPolicy(d.often("Never", "OnFailure", "Always", "", "never")))
	}
	if d.rarely() {
		r := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleAction(d.often("Restart", "RestartAllContainers", "", "Stop"))}
		if !d.rarely() {
			r.ExitCodes = &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOperator(d.often("In", "NotIn", "", "in")), Values: []int32{1, 42},
			}
			if d.rarely() {
				r.ExitCodes.Values = make([]int32, 256)
			}
		}
		for range d.number(1, 2, 21) {
			c.RestartPolicyRules = append(c.RestartPolicyRules, r)
		}
	}
}

func (d draw) probe() *corev1.Probe {
	p := &corev1.Probe{}
	for _, f := range []*int32{&p.InitialDelaySeconds, &p.TimeoutSeconds, &p.PeriodSeconds, &p.SuccessThreshold, &p.FailureThreshold} {
		if d.rarely() {
			*f = int32(d.number(0, 1, 2, -1))
		}
	}
	if d.rarely() {
		p.TerminationGracePeriodSeconds = new(d.number(5, 0, -1))
	}
	if d.maybe() {
		p.Exec = d.exec()
	} else {
		p.HTTPGet = d.httpGet()
	}
	if d.rarely() {
		p.TCPSocket = &corev1.TCPSocketAction{Port: d.port()}
	}
	if d.rarely() {
		p.Exec, p.HTTPGet = nil, nil
	}
	if d.rarely() {
		p.GRPC = &corev1.GRPCAction{Port: int32(d.number(1, 0, 65536))}
		if d.maybe() {
			p.GRPC.Mode = new(corev1.GRPCProbeMode(d.often("TLS", "Plaintext", "tls", "")))
		}
	}
	return p
}

func (d draw) hook() *corev1.LifecycleHandler {
	h := &corev1.LifecycleHandler{}
	if d.maybe() {
		h.Exec = d.exec()
	}
	if d.rarely() {
		h.HTTPGet = d.httpGet()
	}
	if d.maybe() {
		h.Sleep = &corev1.SleepAction{Seconds: d.number(0, 1, 30, 31, -1)}
	}
	return h
}

func (d draw) exec() *corev1.ExecAction {
	if d.rarely() {
		return &corev1.ExecAction{}
	}
	return &corev1.ExecAction{Command: []string{"a", "b"}}
}

func (d draw) httpGet() *corev1.HTTPGetAction {
	h := &corev1.HTTPGetAction{
		Path: d.often("", "/a?b"), Port: d.port(), Host: d.often("", "h"), Scheme: corev1.URIScheme(d.often("", "HTTPS", "HTTP", "http")),
	}
	if d.rarely() {
		h.HTTPHeaders = []corev1.HTTPHeader{{Name: d.one("X-A", "", "a b"), Value: "v"}}
	}
	if d.rarely() {
		h.Protocol = new(corev1.HTTPProtocol(d.often("HTTP2", "HTTP1", "h2", "")))
	}
	return h
}

func (d draw) port() intstr.IntOrString {
	if d.rarely() {
		return intstr.FromString(d.one("web", "", "Web", "80", "much-too-long-a-name"))
	}
	return intstr.FromInt32(int32(d.number(80, 1, 65535, 0, 65536)))
}
