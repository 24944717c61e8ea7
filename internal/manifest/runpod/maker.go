// Package runpod makes a Pod from the options of docker run and podman run. `podrun run` takes them from its command
// line, and Quadlet's .container and .pod files name them by keys.
package runpod

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// Host is the machine, as the options depend on it.
type Host struct {
	Dir         string                                 // relative paths begin here
	LookupEnv   func(name string) (string, bool)       // the value of -e NAME
	ReadEnvFile func(path string) ([]string, error)    // the lines NAME=VALUE, or NAME
	ReadFile    func(path string) ([]byte, error)      // the lines of --label-file
	Stat        func(path string) (fs.FileMode, error) // the kind of a device
	SELinux     func() bool                            // whether files have labels
}

// StopSeconds is the grace period of docker stop and podman stop.
const StopSeconds = int64(10)

// Pod is a Pod while options are set.
type Pod struct {
	*corev1.Pod
	Claims  []*corev1.PersistentVolumeClaim // of the volumes with a name
	host    Host
	list    []*Container
	servers []string // name servers
}

// Container is one container of a Pod. Options of the whole Pod may be set by any of its containers.
type Container struct {
	corev1.Container
	pod       *Pod
	host      Host
	words     []string // the command
	entry     []string // the entrypoint, nil: the image's
	shell     bool     // the entrypoint was given
	health    health
	network   string // the value of --network
	publishes bool
}

// New returns a Pod without containers.
func New(name string) *Pod {
	return &Pod{Pod: &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever},
	}}
}

// Add adds a container.
func (p *Pod) Add(name, image string, host Host) *Container {
	c := &Container{Container: corev1.Container{Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent}, pod: p, host: host}
	p.list = append(p.list, c)
	return c
}

// Command sets the words after the image.
func (c *Container) Command(words []string) { c.words = words }

// Set sets an option, without its dashes. The error names neither the option nor the value.
func (c *Container) Set(option, value string) error {
	set, ok := options()[option]
	if !ok {
		return errors.New("podrun has no such option")
	}
	return set(c, value)
}

// Known reports whether there is an option, and Flag whether it has no value.
func Known(option string) bool { _, ok := options()[option]; return ok }

// Flag reports whether an option is set by its name alone.
func Flag(option string) bool { return slices.Contains(flags, option) }

var flags = []string{"init", "no-healthcheck", "privileged", "read-only"}

// options returns the options by their names. Each function adds to the container or its Pod.
func options() map[string]func(c *Container, value string) error {
	return map[string]func(c *Container, value string) error{
		"add-host": (*Container).addHost, "annotation": (*Container).annotation, "cap-add": (*Container).capAdd, "cap-drop": (*Container).capDrop,
		"cpus": (*Container).cpus, "device": (*Container).device, "dns": (*Container).dns, "dns-option": (*Container).dnsOption, "dns-search": (*Container).dnsSearch,
		"entrypoint": (*Container).entrypoint, "env": (*Container).env, "env-file": (*Container).envFile, "gpus": (*Container).gpus,
		"group-add": (*Container).groupAdd, "health-cmd": (*Container).healthCmd, "health-interval": (*Container).healthInterval,
		"health-on-failure": (*Container).healthOnFailure, "health-retries": (*Container).healthRetries, "health-start-period": (*Container).healthStartPeriod,
		"health-startup-cmd": (*Container).startupCmd, "health-startup-interval": (*Container).startupInterval, "health-startup-retries": (*Container).startupRetries,
		"health-startup-success": (*Container).startupSuccess, "health-startup-timeout": (*Container).startupTimeout, "health-timeout": (*Container).healthTimeout,
		"hostname": (*Container).hostname, "init": (*Container).init, "label": (*Container).label, "label-file": (*Container).labelFile,
		"memory": (*Container).memory, "mount": (*Container).mountOption, "network": (*Container).setNetwork, "no-healthcheck": (*Container).noHealthcheck,
		"pids-limit": (*Container).pidsLimit, "privileged": (*Container).privileged, "publish": (*Container).publish, "pull": (*Container).pull,
		"read-only": (*Container).readOnly, "restart": (*Container).restart, "secret": (*Container).secret, "security-opt": (*Container).securityOpt,
		"shm-size": (*Container).shmSize, "stop-signal": (*Container).stopSignal, "stop-timeout": (*Container).stopTimeout, "sysctl": (*Container).sysctl,
		"tmpfs": (*Container).tmpfs, "tz": (*Container).timezone, "ulimit": (*Container).ulimit, "user": (*Container).user, "volume": (*Container).volume,
		"workdir": (*Container).workdir,
	}
}

// Finish sets the fields that several options decide, and returns the errors of options that do not fit together.
func (p *Pod) Finish() error {
	var errs []error
	if p.Spec.TerminationGracePeriodSeconds == nil {
		p.Spec.TerminationGracePeriodSeconds = new(StopSeconds)
	}
	for _, c := range p.list {
		errs = append(errs, c.finishCommand(), c.finishHealth())
		if c.publishes && (p.Spec.HostNetwork || c.network == "none") {
			errs = append(errs, fmt.Errorf("a published port has no effect with the network %s: omit one of them", c.network))
		}
		p.Spec.Containers = append(p.Spec.Containers, c.Container)
	}
	p.finishDNS()
	return errors.Join(errs...)
}

// finishDNS sets the name servers. In the host's network they are the Pod's own.
func (p *Pod) finishDNS() {
	switch {
	case len(p.servers) == 0:
	case p.Spec.HostNetwork:
		p.Spec.DNSPolicy = corev1.DNSNone
		if p.Spec.DNSConfig == nil {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{}
		}
		p.Spec.DNSConfig.Nameservers = p.servers
	default:
		p.annotate(podutil.AnnotationDNSServers, strings.Join(p.servers, ","))
	}
}

// Share mounts the volumes of a container that are not yet in the others there, too.
func (c *Container) Share(mounts []corev1.VolumeMount) {
	for _, other := range c.pod.list {
		if other != c {
			other.VolumeMounts = append(other.VolumeMounts, mounts...)
		}
	}
}

// finishCommand sets command and args. Without an entrypoint the image's runs with the words as arguments.
func (c *Container) finishCommand() error {
	switch {
	case !c.shell:
		c.Args = literals(c.words)
	case len(c.entry) > 0:
		c.Container.Command, c.Args = literals(c.entry), literals(c.words)
	case len(c.words) == 0:
		return errors.New("an empty entrypoint requires a command")
	default:
		c.Container.Command = literals(c.words)
	}
	return nil
}

// security returns the container's security context.
func (c *Container) security() *corev1.SecurityContext {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	return c.SecurityContext
}

// podSecurity returns the Pod's security context.
func (p *Pod) podSecurity() *corev1.PodSecurityContext {
	if p.Spec.SecurityContext == nil {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	return p.Spec.SecurityContext
}

// annotate sets an annotation of the Pod.
func (p *Pod) annotate(key, value string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}

// addVolume mounts a volume, which other containers of the Pod may have already.
func (c *Container) addVolume(source corev1.VolumeSource, mount corev1.VolumeMount) {
	p := c.pod
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return source.EmptyDir == nil && reflect.DeepEqual(v.VolumeSource, source)
	})
	if i < 0 {
		i = len(p.Spec.Volumes)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", i+1), VolumeSource: source})
	}
	mount.Name = p.Spec.Volumes[i].Name
	c.VolumeMounts = append(c.VolumeMounts, mount)
}

// literal returns a text in which Kubernetes expands no $(NAME), as docker does not.
func literal(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '$') {
			b.WriteByte('$')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func literals(words []string) (list []string) {
	for _, word := range words {
		list = append(list, literal(word))
	}
	return list
}

// ObjectName makes the name of an object of a name of docker: small letters, digits, - and dots.
func ObjectName(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(name, "-.")
}
