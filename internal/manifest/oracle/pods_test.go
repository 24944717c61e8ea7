package oracle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// draw makes random Pods of the fields that podrun supports, with values that are mostly valid.
type draw struct {
	*rapid.T
	// wrong allows mistakes that only validation finds: images that are no references.
	wrong bool
}

func (d draw) maybe() bool { return rapid.Bool().Draw(d.T, "?") }

func (d draw) rarely() bool { return rapid.IntRange(0, 7).Draw(d.T, "rarely") == 0 }

func (d draw) one(of ...string) string { return rapid.SampledFrom(of).Draw(d.T, "one") }

func (d draw) number(of ...int64) int64 { return rapid.SampledFrom(of).Draw(d.T, "number") }

// often returns the first value, except for one time in eight.
func (d draw) often(value string, other ...string) string {
	if d.rarely() {
		return d.one(other...)
	}
	return value
}

func (d draw) pod() *corev1.Pod {
	p := &corev1.Pod{}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Name = d.often("web", "", "..", "a/b", "A", "a.b")
	p.Namespace = d.often("", "shop", "a.b", "-")
	if d.rarely() {
		p.Labels = map[string]string{d.one("app", "a/b", "a b", ""): d.one("x", "", "-x")}
	}
	s := &p.Spec
	s.RestartPolicy = corev1.RestartPolicy(d.often("", "Always", "Never", "OnFailure", "always"))
	s.DNSPolicy = corev1.DNSPolicy(d.often("", "Default", "ClusterFirst", "None of them"))
	s.Hostname = d.often("", "h", "H", "a.b")
	s.NodeName = d.often("", "n", "N!")
	s.ServiceAccountName = d.often("", "robot", "Robot")
	if d.rarely() {
		s.TerminationGracePeriodSeconds = new(d.number(0, 1, 30))
	}
	if d.rarely() {
		s.ActiveDeadlineSeconds = new(d.number(-1, 0, 1, 2147483647, 2147483648))
	}
	if d.rarely() {
		s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(d.one("a", "a.b/c", "", "a b"))}}
	}
	if d.rarely() {
		s.OS = &corev1.PodOS{Name: corev1.Linux}
	}
	if d.rarely() {
		s.SecurityContext = d.podSecurity()
	}
	if d.rarely() {
		s.Resources = new(d.resources())
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "volumes") {
		v := corev1.Volume{Name: d.one("v", "w", "V", "")}
		if d.maybe() {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: "Memory"}
			if d.maybe() {
				v.EmptyDir.SizeLimit = new(resource.MustParse(d.one("1Mi", "0", "-1")))
			}
		}
		s.Volumes = append(s.Volumes, v)
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "inits") {
		c := d.container()
		if d.maybe() {
			c.RestartPolicy = new(corev1.ContainerRestartPolicy(d.often("Always", "Never", "Perhaps")))
		}
		s.InitContainers = append(s.InitContainers, c)
	}
	for range rapid.IntRange(0, 3).Draw(d.T, "apps") {
		s.Containers = append(s.Containers, d.container())
	}
	return p
}

func (d draw) container() corev1.Container {
	c := corev1.Container{
		Name:                     d.one("a", "b", "c", "d", "e", "f", "g", "A", "a.b", ""),
		Image:                    d.often("busybox:1.36", "busybox", "r:5000/x", "x@sha256:"+digest, "a:latest@sha256:"+digest),
		ImagePullPolicy:          corev1.PullPolicy(d.often("", "Always", "Never", "IfNotPresent", "Sometimes")),
		TerminationMessagePath:   d.often("", "/dev/log"),
		TerminationMessagePolicy: corev1.TerminationMessagePolicy(d.often("", "File", "FallbackToLogsOnError", "Log")),
		Resources:                d.resources(),
	}
	if d.wrong && d.rarely() {
		c.Image = d.one("", " x")
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "env") {
		c.Env = append(c.Env, d.env())
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "envFrom") {
		if d.rarely() {
			c.EnvFrom = append(c.EnvFrom, d.envFrom())
		}
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "ports") {
		c.Ports = append(c.Ports, corev1.ContainerPort{
			Name:          d.one("", "web", "dns", "80", "Web", "a--b", "much-too-long-a-name"),
			ContainerPort: int32(d.number(80, 81, 65535, 0, -1, 65536)),
			Protocol:      corev1.Protocol(d.often("", "TCP", "UDP", "SCTP", "tcp")),
		})
	}
	for i := range rapid.IntRange(0, 2).Draw(d.T, "mounts") {
		path := string(rune('a' + i))
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: d.one("v", "w", "x", ""), MountPath: d.often("/"+path, "", "/same"), ReadOnly: d.maybe()})
	}
	if d.rarely() {
		c.SecurityContext = d.security()
	}
	if d.wrong || d.rarely() {
		d.asked(&c)
	}
	return c
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (d draw) env() corev1.EnvVar {
	e := corev1.EnvVar{Name: d.often("A", "", "a.b", "A=B", "A B", "ä")}
	if d.maybe() {
		e.Value = d.one("", "x", "$(A)")
	}
	if d.rarely() {
		e.ValueFrom = &corev1.EnvVarSource{}
		if d.maybe() {
			d.reference(e.ValueFrom)
		}
		if d.maybe() {
			e.ValueFrom.FieldRef = &corev1.ObjectFieldSelector{
				APIVersion: d.often("", "v1", "v2"),
				FieldPath: d.one("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['a']", "metadata.annotations['A/b']", "metadata.labels['a b']",
					"spec.nodeName", "spec.serviceAccountName", "", "spec.x['a']", "status.podIP"),
			}
		}
	}
	return e
}

func (d draw) resources() corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	for _, list := range []*corev1.ResourceList{&r.Limits, &r.Requests} {
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if d.maybe() {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[name] = resource.MustParse(d.one("0", "1", "2", "100m", "64Mi", "1Gi", "1u", d.often("3", "-1")))
			}
		}
	}
	return r
}

func (d draw) id() *int64 {
	if d.maybe() {
		return nil
	}
	return new(d.number(0, 1, 1000, -1, 2147483647, 2147483648, 4294967296))
}

func (d draw) podSecurity() *corev1.PodSecurityContext {
	sc := &corev1.PodSecurityContext{RunAsUser: d.id(), RunAsGroup: d.id(), SeccompProfile: d.seccomp()}
	for range rapid.IntRange(0, 2).Draw(d.T, "groups") {
		sc.SupplementalGroups = append(sc.SupplementalGroups, d.number(1, 0, -1, 2147483648))
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "sysctls") {
		sc.Sysctls = append(sc.Sysctls, corev1.Sysctl{Name: d.one("net.ipv4.tcp_syncookies", "net.ipv4.tcp_rmem", ""), Value: "1"})
	}
	return sc
}

func (d draw) security() *corev1.SecurityContext {
	sc := &corev1.SecurityContext{RunAsUser: d.id(), RunAsGroup: d.id(), SeccompProfile: d.seccomp()}
	if d.maybe() {
		sc.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"CHOWN"}, Drop: []corev1.Capability{"ALL"}}
	}
	if d.maybe() {
		sc.AllowPrivilegeEscalation = new(d.maybe())
	}
	return sc
}

func (d draw) seccomp() *corev1.SeccompProfile {
	if d.maybe() {
		return nil
	}
	return &corev1.SeccompProfile{Type: corev1.SeccompProfileType(d.one("RuntimeDefault", "Unconfined", "", "Mine"))}
}
