package run

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// stopSeconds is the grace period of docker stop.
const stopSeconds = int64(10)

// newPod makes the Pod, and the claims of its named volumes.
func (o *options) newPod() (p *corev1.Pod, claims []*corev1.PersistentVolumeClaim, err error) {
	container := containerName(o.image)
	p = &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: o.name, Namespace: o.env.NamespaceFlag},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: container, Image: o.image}},
			TerminationGracePeriodSeconds: new(stopSeconds),
		},
	}
	if p.Name == "" {
		p.Name = container + "-" + cmdutil.RandomSuffix()
	}
	if list := validation.IsDNS1123Subdomain(p.Name); len(list) > 0 {
		return nil, nil, usageErrorf("--name cannot be %q: %s", p.Name, list[0])
	}
	c := &p.Spec.Containers[0]
	// The end of the local input ends the container's input only if podrun attaches to it.
	c.Stdin, c.StdinOnce, c.TTY = o.stdin, o.stdin && !o.detach, o.tty
	for _, set := range []func(*corev1.Pod, *corev1.Container) error{
		o.setCommand, o.setEnv, o.setSecurity, o.setPolicies, o.setResources, o.setNetwork, o.setPorts, o.setDevices,
	} {
		if err := set(p, c); err != nil {
			return nil, nil, err
		}
	}
	claims, err = o.setVolumes(p, c)
	return p, claims, err
}

// containerName makes a container's name from its image's name.
func containerName(image string) string {
	base, _, _ := strings.Cut(path.Base(image), "@")
	base, _, _ = strings.Cut(base, ":")
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, base)
	if name = strings.Trim(name[:min(len(name), 50)], "-"); name == "" {
		return "run"
	}
	return name
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

func (o *options) setCommand(_ *corev1.Pod, c *corev1.Container) error {
	c.WorkingDir = o.workdir
	switch {
	case o.workdir != "" && !path.IsAbs(o.workdir):
		return usageErrorf("--workdir: %q is not an absolute path", o.workdir)
	case o.entrypoint == nil:
		c.Args = literals(o.command)
	case *o.entrypoint != "":
		c.Command, c.Args = literals([]string{*o.entrypoint}), literals(o.command)
	case len(o.command) == 0:
		return usageErrorf("--entrypoint \"\" requires a command")
	default:
		c.Command = literals(o.command)
	}
	return nil
}

func (o *options) setSecurity(_ *corev1.Pod, c *corev1.Container) error {
	var s corev1.SecurityContext
	if o.user != "" {
		user, group, grouped := strings.Cut(o.user, ":")
		uid, err := strconv.ParseInt(user, 10, 64)
		s.RunAsUser = &uid
		if grouped && err == nil {
			var gid int64
			gid, err = strconv.ParseInt(group, 10, 64)
			s.RunAsGroup = &gid
		}
		if err != nil {
			return usageErrorf("--user cannot be %q: a Pod has ids only; podrun run --rm %s id NAME prints the ids of a user", o.user, o.image)
		}
	}
	if o.readOnly {
		s.ReadOnlyRootFilesystem = &o.readOnly
	}
	if s != (corev1.SecurityContext{}) {
		c.SecurityContext = &s
	}
	return nil
}

// setPolicies sets when the container is restarted and its image is pulled.
func (o *options) setPolicies(p *corev1.Pod, c *corev1.Container) error {
	restarts := map[string]corev1.RestartPolicy{
		"no": corev1.RestartPolicyNever, "on-failure": corev1.RestartPolicyOnFailure,
		"always": corev1.RestartPolicyAlways, "unless-stopped": corev1.RestartPolicyAlways,
	}
	pulls := map[string]corev1.PullPolicy{"always": corev1.PullAlways, "missing": corev1.PullIfNotPresent, "never": corev1.PullNever}
	var known bool
	if p.Spec.RestartPolicy, known = restarts[o.restart]; !known {
		if strings.HasPrefix(o.restart, "on-failure:") {
			return usageErrorf("--restart %s: podrun does not limit the number of restarts: use on-failure", o.restart)
		}
		return usageErrorf("--restart must be no, on-failure, always or unless-stopped, not %q", o.restart)
	}
	if c.ImagePullPolicy, known = pulls[o.pull]; !known {
		return usageErrorf("--pull must be always, missing or never, not %q", o.pull)
	}
	return nil
}

func (o *options) setResources(_ *corev1.Pod, c *corev1.Container) error {
	limits := corev1.ResourceList{}
	if o.memory != "" {
		bytes, err := parseSize(o.memory)
		if err != nil {
			return err
		}
		limits[corev1.ResourceMemory] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
	if o.cpus != "" {
		n, err := strconv.ParseFloat(o.cpus, 64)
		if err != nil || !(n >= 0.001 && n < 1e6) {
			return usageErrorf("--cpus cannot be %q: use a number such as 1.5", o.cpus)
		}
		limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Round(n*1000)), resource.DecimalSI)
	}
	if o.gpus != "" {
		switch n, err := strconv.Atoi(o.gpus); {
		case o.gpus == "all":
			limits["nvidia.com/gpu=all"] = resource.MustParse("1")
		case err != nil || n < 1:
			return usageErrorf("--gpus must be all or a number, not %q; --device nvidia.com/gpu=NAME gives a certain one", o.gpus)
		default:
			limits["nvidia.com/gpu"] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		}
	}
	if len(limits) > 0 {
		c.Resources.Limits = limits
	}
	return nil
}

// parseSize parses a number of bytes as docker does: 512m, 2g, 1.5gb, in powers of 1024.
func parseSize(text string) (int64, error) {
	word := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	shift := 0
	for i, unit := range []string{"k", "m", "g", "t", "p"} {
		if cut, ok := strings.CutSuffix(word, unit); ok {
			word, shift = cut, 10*(i+1)
		}
	}
	n, err := strconv.ParseFloat(word, 64)
	if size := n * float64(int64(1)<<shift); err == nil && size >= 1 && size < 1<<62 {
		return int64(size), nil
	}
	return 0, usageErrorf("--memory cannot be %q: use a size such as 512m or 2g", text)
}

func (o *options) setNetwork(p *corev1.Pod, _ *corev1.Container) error {
	switch o.network {
	case "", "default":
		return nil
	case "host":
		p.Spec.HostNetwork = true
	case "none":
		p.Annotations = map[string]string{podutil.AnnotationNetwork: string(pod.NetworkNone)}
	default:
		return usageErrorf("--network must be host, none or default, not %q: the pods of a user share a network", o.network)
	}
	if len(o.ports) > 0 {
		return usageErrorf("-p has no effect with --network %s", o.network)
	}
	return nil
}

// volumeName returns the name of the Pod's next volume.
func volumeName(p *corev1.Pod) string { return fmt.Sprintf("volume-%d", len(p.Spec.Volumes)+1) }
