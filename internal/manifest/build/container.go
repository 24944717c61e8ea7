package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// builder makes one container of a plan.
type builder struct {
	pod      *corev1.Pod
	c        *corev1.Container
	hostname string
	image    pod.Image

	effective   resources.Effective
	seccomp     map[string]json.RawMessage
	allocatable corev1.ResourceList
}

func (b *builder) build(images map[string]pod.Image) (*pod.Container, error) {
	var ok bool
	if b.image, ok = images[b.c.Name]; !ok {
		return nil, fmt.Errorf("build container %s: its image %s was not looked up", b.c.Name, b.c.Image)
	}
	if b.image.Artifact != "" {
		return nil, fmt.Errorf("container %s cannot run: its image %s is an OCI artifact of type %q, not a container image: only a volume (spec.volumes[].image) can use it", b.c.Name, b.c.Image, b.image.Artifact)
	}
	vars, err := b.vars()
	if err != nil {
		return nil, err
	}
	args, err := b.args()
	if err != nil {
		return nil, err
	}
	user, err := b.user()
	if err != nil {
		return nil, err
	}
	// A manifest cannot contain a zero byte.
	if slices.ContainsFunc(slices.Concat(args, []string{user, b.cwd()}), func(word string) bool { return strings.ContainsRune(word, 0) }) {
		return nil, fmt.Errorf("container %s cannot run: the configuration of its image %s has a zero byte in ENTRYPOINT, CMD, USER or WORKDIR", b.c.Name, b.c.Image)
	}
	sc := b.security()
	life := b.lifecycle()
	policy, rules := b.restart()
	return &pod.Container{
		Name: b.c.Name, Image: b.c.Image, ImageID: b.image.ID, Layers: b.image.Layers,
		Sidecar:            podutil.IsSidecarOf(b.pod, b.c),
		Args:               args,
		Env:                b.ownEnv(),
		EnvFrom:            b.envFrom(),
		Vars:               vars,
		Cwd:                b.cwd(),
		Stdin:              b.c.Stdin,
		StdinOnce:          b.c.StdinOnce,
		TTY:                b.c.TTY,
		User:               user,
		SupplementalGroups: b.groups(),
		GroupsStrict:       ptr.Deref(podSecurity(b.pod).SupplementalGroupsPolicy, "") == corev1.SupplementalGroupsPolicyStrict,
		NonRoot:            b.nonRoot(),
		RestartPolicy:      policy,
		RestartRules:       rules,
		Liveness:           b.probe(b.c.LivenessProbe),
		Readiness:          b.probe(b.c.ReadinessProbe),
		Startup:            b.probe(b.c.StartupProbe),
		PostStart:          b.hook(life.PostStart),
		PreStop:            b.hook(life.PreStop),
		StopSignal:         string(ptr.Deref(life.StopSignal, corev1.Signal(b.image.StopSignal))),
		ReadOnlyRoot:       ptr.Deref(sc.ReadOnlyRootFilesystem, false),
		NoNewPrivileges:    !ptr.Deref(sc.AllowPrivilegeEscalation, true),
		Capabilities:       capabilities(sc),
		SeccompUnconfined:  b.unconfined(),
		Seccomp:            b.ownSeccomp(),
		AppArmor:           b.appArmor(),
		Privileged:         ptr.Deref(sc.Privileged, false),
		ProcUnmasked:       ptr.Deref(sc.ProcMount, "") == corev1.UnmaskedProcMount,
		Mounts:             b.mounts(),
		KeepFiles:          b.pod.Annotations[podutil.AnnotationKeepFiles] == "true",

		TerminationMessagePath: podutil.MountPoint(b.c.TerminationMessagePath),
		TerminationMessageFrom: pod.TerminationMessagePolicy(b.c.TerminationMessagePolicy),
	}, nil
}

// args returns the whole argv: command replaces ENTRYPOINT and drops CMD, args replaces CMD. Only the
// manifest's words are expanded.
func (b *builder) args() ([]string, error) {
	command, args := b.c.Command, b.c.Args
	if len(command) == 0 {
		command = escaped(b.image.Entrypoint)
		if len(args) == 0 {
			args = escaped(b.image.Cmd)
		}
	}
	argv := slices.Concat(command, args)
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("container %s has nothing to run: give it a command, its image %s has neither ENTRYPOINT nor CMD", b.c.Name, b.c.Image)
	}
	return argv, nil
}

func escaped(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, environ.Literal(s))
	}
	return out
}

// cwd returns the manifest's working directory, the image's or the root. It is absolute.
func (b *builder) cwd() string {
	dir := cmp.Or(b.c.WorkingDir, b.image.WorkingDir, "/")
	if !path.IsAbs(dir) {
		dir = "/" + dir
	}
	return dir
}

// security returns the container's own securityContext, never nil.
func (b *builder) security() *corev1.SecurityContext {
	return cmp.Or(b.c.SecurityContext, &corev1.SecurityContext{})
}

// podSecurity returns the pod's securityContext, never nil.
func podSecurity(p *corev1.Pod) *corev1.PodSecurityContext {
	return cmp.Or(p.Spec.SecurityContext, &corev1.PodSecurityContext{})
}

func (b *builder) groups() []uint32 {
	sc := podSecurity(b.pod)
	var groups []uint32
	for _, g := range sc.SupplementalGroups {
		groups = append(groups, uint32(g))
	}
	if sc.FSGroup != nil && !slices.Contains(groups, uint32(*sc.FSGroup)) {
		groups = append(groups, uint32(*sc.FSGroup))
	}
	return groups
}

// setOptions sets what annotations of a valid Pod request for a container.
func setOptions(p *corev1.Pod, c *pod.Container) {
	if value := podutil.ContainerOption(p, podutil.OptionUlimits, c.Name); value != "" {
		c.Ulimits, _ = podutil.ParseUlimits(value)
	}
	if value := podutil.ContainerOption(p, podutil.OptionGroups, c.Name); value != "" {
		c.Groups, _ = podutil.ParseGroups(value)
	}
	if value := podutil.ContainerOption(p, podutil.OptionMaxRestarts, c.Name); value != "" {
		c.MaxRestarts, _ = podutil.ParseMaxRestarts(value)
	}
}

// launchPriority returns an app container's priority: by its place in the list if the pod requests that,
// else by its variable.
func launchPriority(p *corev1.Pod, index int) int {
	if p.Annotations[podutil.LaunchPriorityKey] == podutil.LaunchPriorityOrdered || p.Labels[podutil.LaunchPriorityKey] == podutil.LaunchPriorityOrdered {
		return -index
	}
	for _, e := range p.Spec.Containers[index].Env {
		if e.Name == podutil.LaunchPriorityEnv || e.Name == podutil.LaunchPriorityEnvOld {
			n, _ := strconv.Atoi(e.Value) // validation has refused other texts
			return n
		}
	}
	return 0
}
