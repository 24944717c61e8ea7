package run

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
)

// servicePod returns the pod of a service of compose files, changed by the command line, and the objects that it needs. It
// has no host ports, because the service's own pod may have them, and no Service leads to it.
func (o *options) servicePod() (docs resource.Documents, err error) {
	sources, err := resource.ReadFiles(o.env, nil)
	if err == nil {
		docs, err = resource.Load(sources)
	}
	if err != nil {
		return docs, err
	}
	i := slices.IndexFunc(docs.Pods, func(p manifest.Object) bool { return p.Pod.Name == o.env.Compose.Pod })
	if i < 0 {
		return docs, report.New(report.Internal, "", "the project has no pod %s", o.env.Compose.Pod)
	}
	p := docs.Pods[i].Pod
	p.Name = o.name
	delete(p.Labels, labelService)
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &p.Spec.Containers[0]
	for j := range c.Ports {
		c.Ports[j].HostPort, c.Ports[j].HostIP = 0, ""
	}
	c.Stdin, c.StdinOnce, c.TTY = o.stdin, o.stdin && !o.detach, o.tty
	if err := o.changeContainer(c); err != nil {
		return docs, err
	}
	docs.Pods, err = load(p, p.Namespace)
	docs.Stored = slices.DeleteFunc(docs.Stored, func(s manifest.Object) bool { return s.Kind == "Service" })
	return docs, err
}

// labelService is the label of a pod with its service, which the Service selects.
const labelService = "app.kubernetes.io/name"

// changeContainer changes what the command line has.
func (o *options) changeContainer(c *corev1.Container) error {
	var given corev1.Container
	if err := o.setSecurity(nil, &given); err != nil {
		return err
	}
	if s := given.SecurityContext; s != nil {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = s.RunAsUser, s.RunAsGroup
	}
	if len(o.command) > 0 {
		c.Args = literals(o.command)
	}
	if o.workdir != "" {
		c.WorkingDir = o.workdir
	}
	return o.setEnv(nil, c)
}
