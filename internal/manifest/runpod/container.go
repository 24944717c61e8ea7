package runpod

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// entrypoint takes a program, or a list of words in JSON, as docker's and podman's option does.
func (c *Container) entrypoint(value string) error {
	c.shell, c.entry = true, nil
	switch {
	case value == "":
	case value[0] == '[' && json.Unmarshal([]byte(value), &c.entry) == nil:
	default:
		c.entry = []string{value}
	}
	return nil
}

func (c *Container) workdir(value string) error {
	c.WorkingDir = value
	if !path.IsAbs(value) {
		return fmt.Errorf("%q is not an absolute path", value)
	}
	return nil
}

// env sets NAME=VALUE; NAME alone takes its value from the environment, if it is there.
func (c *Container) env(word string) error {
	name, value, whole := strings.Cut(word, "=")
	if name == "" {
		return fmt.Errorf("%q has no name", word)
	}
	if !whole {
		if value, whole = c.host.LookupEnv(name); !whole {
			return nil
		}
	}
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: literal(value)})
	return nil
}

func (c *Container) envFile(file string) error {
	lines, err := c.host.ReadEnvFile(file)
	for _, line := range lines {
		err = errors.Join(err, c.env(line))
	}
	return err
}

// restarts returns the policies of restarts by docker's words.
func restarts() map[string]corev1.RestartPolicy {
	return map[string]corev1.RestartPolicy{
		"no": corev1.RestartPolicyNever, "on-failure": corev1.RestartPolicyOnFailure,
		"always": corev1.RestartPolicyAlways, "unless-stopped": corev1.RestartPolicyAlways,
	}
}

// pulls returns the policies of pulls by docker's words.
func pulls() map[string]corev1.PullPolicy {
	return map[string]corev1.PullPolicy{"always": corev1.PullAlways, "missing": corev1.PullIfNotPresent, "never": corev1.PullNever}
}

func (c *Container) restart(value string) error {
	word, attempts, limited := strings.Cut(value, ":")
	policy, known := restarts()[word]
	switch {
	case limited && word == "on-failure":
		if err := c.option(podutil.OptionMaxRestarts, attempts); err != nil {
			return err
		}
	case limited || !known:
		return errors.New("use no, on-failure, always or unless-stopped")
	}
	c.pod.Spec.RestartPolicy = policy
	return nil
}

func (c *Container) pull(value string) error {
	policy, known := pulls()[value]
	if !known {
		return errors.New("use always, missing or never")
	}
	c.ImagePullPolicy = policy
	return nil
}

// limit sets a limit of the container's resources.
func (c *Container) limit(name corev1.ResourceName, quantity resource.Quantity) {
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[name] = quantity
}

func (c *Container) memory(value string) error {
	bytes, err := parseSize(value)
	c.limit(corev1.ResourceMemory, *resource.NewQuantity(bytes, resource.BinarySI))
	return err
}

func (c *Container) cpus(value string) error {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= 0.001 && n < 1e6) {
		return errors.New("use a number such as 1.5")
	}
	c.limit(corev1.ResourceCPU, *resource.NewMilliQuantity(int64(math.Round(n*1000)), resource.DecimalSI))
	return nil
}

// maxPIDs is how many processes and threads Linux can have (PID_MAX_LIMIT): a higher limit limits nothing.
const maxPIDs = 4194304

// pidsLimit sets how many processes and threads the container may have; 0 and -1 are no limit.
func (c *Container) pidsLimit(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < -1 {
		return errors.New("use a number of processes and threads; -1 is no limit")
	}
	if n > 0 && n <= maxPIDs {
		c.limit("pids", *resource.NewQuantity(n, resource.DecimalSI))
	}
	return nil
}

func (c *Container) gpus(value string) error {
	switch n, err := strconv.Atoi(value); {
	case value == "all":
		c.limit("nvidia.com/gpu=all", resource.MustParse("1"))
	case err != nil || n < 1:
		return errors.New("use all or a number; the option device nvidia.com/gpu=NAME gives a certain one")
	default:
		c.limit("nvidia.com/gpu", *resource.NewQuantity(int64(n), resource.DecimalSI))
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
	return 0, fmt.Errorf("%q is no size: use 512m or 2g", text)
}

// annotation sets an annotation of the Pod, KEY=VALUE.
func (c *Container) annotation(word string) error {
	key, value, _ := strings.Cut(word, "=")
	if key == "" {
		return fmt.Errorf("%q has no key", word)
	}
	c.pod.annotate(key, value)
	return nil
}

// labelFile sets the labels of a file, a KEY=VALUE on each line.
func (c *Container) labelFile(file string) error {
	text, err := c.host.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			err = errors.Join(err, c.label(line))
		}
	}
	return err
}

// stopSignal sets the signal that ends the container.
func (c *Container) stopSignal(value string) error {
	name := strings.ToUpper(value)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return errors.New("name the signal, as in SIGINT")
	}
	signal := corev1.Signal("SIG" + strings.TrimPrefix(name, "SIG"))
	c.Lifecycle = &corev1.Lifecycle{StopSignal: &signal}
	c.pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
	return nil
}

// stopTimeout sets the seconds between that signal and SIGKILL. A Pod has the largest one of its containers.
func (c *Container) stopTimeout(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return errors.New("use a number of seconds; a container is always killed in the end")
	}
	if old := c.pod.Spec.TerminationGracePeriodSeconds; old == nil || *old < n {
		c.pod.Spec.TerminationGracePeriodSeconds = &n
	}
	return nil
}

// secret mounts a Secret, or sets a variable to it, by podman's words: NAME[,type=mount|env][,target=…][,mode=…].
// podman's secrets have no keys: the key is the name.
func (c *Container) secret(word string) error {
	parts := strings.Split(word, ",")
	name, target, env, mode := strings.TrimPrefix(parts[0], "source="), "", false, int32(0o444)
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case key == "type" && (value == "mount" || value == "env"):
			env = value == "env"
		case key == "target":
			target = value
		case key == "mode":
			n, err := strconv.ParseInt(value, 8, 32)
			if err != nil || n < 0 || n > 0o777 {
				return fmt.Errorf("%q is no mode", value)
			}
			mode = int32(n)
		default:
			return fmt.Errorf("%q is refused: podrun has type=mount, type=env, target and mode; the file belongs to root of the container", part)
		}
	}
	if env {
		if target == "" {
			target = name
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: target, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ObjectName(name)}, Key: name},
		}})
		return nil
	}
	if target == "" {
		target = name
	}
	if !path.IsAbs(target) {
		target = path.Join("/run/secrets", target)
	}
	c.addVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: ObjectName(name), DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: name, Path: name}},
	}}, corev1.VolumeMount{MountPath: target, SubPath: name, ReadOnly: true})
	return nil
}

// device adds a device: a path by a hostPath volume, a name of CDI among the limits.
func (c *Container) device(word string) error {
	if name := corev1.ResourceName(word); !strings.HasPrefix(word, "/") && podutil.IsDeviceName(name) {
		c.limit(name, resource.MustParse("1"))
		return nil
	}
	host, inside, err := parseDevice(word)
	if err != nil {
		return err
	}
	kind, err := c.deviceKind(host)
	if err != nil {
		return err
	}
	c.addVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host, Type: &kind}}, corev1.VolumeMount{MountPath: inside})
	return nil
}
