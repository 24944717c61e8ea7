package manifest

import corev1 "k8s.io/api/core/v1"

// probesOf lists the three probes, each nil where there is none.
func probesOf(c *corev1.Container) []*corev1.Probe {
	return []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe}
}

// hooksOf gives the two hooks, each nil where there is none.
func hooksOf(c *corev1.Container) []*corev1.LifecycleHandler {
	if c.Lifecycle == nil {
		return nil
	}
	return []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop}
}

// defaultProbes fills in SetDefaults_Probe and SetDefaults_HTTPGetAction.
func defaultProbes(c *corev1.Container) {
	for _, p := range probesOf(c) {
		if p == nil {
			continue
		}
		for _, f := range []struct {
			field     *int32
			otherwise int32
		}{
			{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3},
		} {
			if *f.field == 0 {
				*f.field = f.otherwise
			}
		}
		defaultHTTPGet(p.HTTPGet)
		if p.GRPC != nil && p.GRPC.Service == nil {
			p.GRPC.Service = new("")
		}
	}
	for _, h := range hooksOf(c) {
		if h != nil {
			defaultHTTPGet(h.HTTPGet)
		}
	}
}

func defaultHTTPGet(h *corev1.HTTPGetAction) {
	if h == nil {
		return
	}
	if h.Path == "" {
		h.Path = "/"
	}
	if h.Scheme == "" {
		h.Scheme = corev1.URISchemeHTTP
	}
}
