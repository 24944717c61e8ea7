package run

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
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
	delete(p.Labels, api.LabelService) // which the Service selects
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &p.Spec.Containers[0]
	for j := range c.Ports {
		c.Ports[j].HostPort, c.Ports[j].HostIP = 0, ""
	}
	c.Stdin, c.StdinOnce, c.TTY = o.stdin, o.stdin && !o.detach, o.tty
	if err := o.changeContainer(p, c); err != nil {
		return docs, err
	}
	docs.Pods, err = load(p, p.Namespace)
	docs.Stored = slices.DeleteFunc(docs.Stored, func(s manifest.Object) bool { return s.Kind == "Service" })
	return docs, err
}

// changeContainer changes what the command line has.
func (o *options) changeContainer(p *corev1.Pod, c *corev1.Container) error {
	given, err := o.podOf(p.Name, c.Name)
	if err != nil {
		return err
	}
	with := &given.Spec.Containers[0]
	user := podutil.ContainerOption(given.Pod, podutil.OptionUser, c.Name)
	if s := with.SecurityContext; user != "" || s != nil && s.RunAsUser != nil {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = nil, nil
		if s != nil {
			c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = s.RunAsUser, s.RunAsGroup
		}
		setUser(p, user)
	}
	if len(o.command) > 0 {
		c.Args = with.Args
	}
	c.WorkingDir = cmp.Or(with.WorkingDir, c.WorkingDir)
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(with.Env, func(g corev1.EnvVar) bool { return g.Name == e.Name })
	})
	c.Env = append(c.Env, with.Env...)
	return nil
}

// setUser sets the user of the only container of a pod by its name, "" for none.
func setUser(p *corev1.Pod, name string) {
	maps.DeleteFunc(p.Annotations, func(key, _ string) bool {
		option, _, _ := podutil.CutContainerOption(key)
		return option == podutil.OptionUser
	})
	if name != "" {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[podutil.AnnotationUser] = name
	}
}
