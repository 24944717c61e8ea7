package defaulting

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// defaultProbes does what SetDefaults_Probe and SetDefaults_HTTPGetAction do.
func defaultProbes(c *corev1.Container) {
	for _, p := range podutil.Probes(c) {
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
	for _, h := range podutil.Hooks(c) {
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

func defaultContainer(c *corev1.Container) {
	if c.TerminationMessagePath == "" {
		c.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
	for i := range c.Ports {
		if c.Ports[i].Protocol == "" {
			c.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == "" {
			from.FieldRef.APIVersion = "v1"
		}
		if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil && from.FileKeyRef.Optional == nil {
			from.FileKeyRef.Optional = new(false)
		}
	}
	defaultProbes(c)
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok && name != podutil.ResourcePids {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit.DeepCopy()
		}
	}
}
