package admission

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// deviceDirs returns the directories with CDI descriptions of devices: those for all users, then this
// user's, which take precedence.
func deviceDirs(getenv func(string) string) []string {
	config := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(config) || os.Geteuid() == 0 {
		return cdi.SpecDirs()
	}
	return append(cdi.SpecDirs(), filepath.Join(config, "cdi"))
}

// addDevices gives the containers that request devices by name only their devices. find reads the
// descriptions.
func addDevices(p *corev1.Pod, plan *pod.Plan, dirs []string, find findEdits) error {
	var errs []error
	choose := func(spec *corev1.Container, c *pod.Container) {
		if c.Devices = podutil.DeviceNames(p, spec); len(c.Devices) == 0 && ptr.Deref(p.Spec.RuntimeClassName, "") == podutil.RuntimeNvidia {
			var err error
			if c.Devices, err = visibleDevices(c); err != nil {
				errs = append(errs, report.New(report.Usage, "set its value, or request devices in resources.limits", "container %s of pod %s: %w", spec.Name, plan.Name, err))
			}
		}
	}
	err := giveDevices(p, plan, dirs, find, false, choose)
	return errors.Join(append(errs, err)...)
}

// visibleDevices returns the CDI names of the devices in NVIDIA_VISIBLE_DEVICES, as nvidia-container-runtime
// reads it in its CDI mode. It returns an error for a value that is not known before the container is created,
// such as one of a ConfigMap. It ignores envFrom.
func visibleDevices(c *pod.Container) ([]string, error) {
	const variable = "NVIDIA_VISIBLE_DEVICES"
	value, known := "", true
	for _, kv := range c.Env {
		if name, text, _ := strings.Cut(kv, "="); name == variable {
			value = text
		}
	}
	for _, v := range c.Vars {
		switch {
		case v.Name != variable:
		case v.From == nil:
			value, known = v.Value, true
		case v.From.Text != nil:
			value, known = *v.From.Text, true
		default:
			known = false
		}
	}
	if !known {
		return nil, fmt.Errorf("with runtimeClassName nvidia, %s chooses the devices before the pod starts: valueFrom is not supported for it", variable)
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "" || name == "void" || name == "none":
		case strings.Contains(name, "="):
			names = append(names, name)
		default:
			names = append(names, "nvidia.com/gpu="+name)
		}
	}
	return names, nil
}

// findEdits is cdi.Find, or a test's replacement.
type findEdits func(dirs, names []string) (*cdi.Edits, error)

// giveDevices adds the edits of devices to the Plan: mounts of host files and device nodes, variables, groups
// and hooks. counted selects the containers that request devices by number, or the others. choose sets the
// devices of one.
func giveDevices(p *corev1.Pod, plan *pod.Plan, dirs []string, find findEdits, counted bool, choose func(*corev1.Container, *pod.Container)) error {
	var errs []error
	give := func(specs []corev1.Container, containers []pod.Container) {
		for i := range specs {
			if counted != (len(podutil.DeviceCounts(&specs[i])) > 0) {
				continue
			}
			if choose(&specs[i], &containers[i]); len(containers[i].Devices) == 0 {
				continue
			}
			edits, err := find(dirs, containers[i].Devices)
			if err == nil {
				err = applyEdits(plan, &containers[i], edits)
			}
			if err != nil {
				errs = append(errs, report.New(report.Failure, deviceHint(dirs),
					"container %s of pod %s: %w", specs[i].Name, plan.Name, err))
			}
		}
	}
	give(p.Spec.InitContainers, plan.InitContainers)
	give(p.Spec.Containers, plan.Containers)
	return errors.Join(errs...)
}

// applyEdits applies a device's edits to a container. The edits take precedence over the container's own
// settings, except for its mounts. In a Plan that is changed, the container may already have the edits.
func applyEdits(plan *pod.Plan, c *pod.Container, e *cdi.Edits) error {
	c.Hooks = nil
	for _, d := range e.Devices {
		kind := string(corev1.HostPathCharDev)
		if d.Block {
			kind = string(corev1.HostPathBlockDev)
		}
		addHostFile(plan, c, d.Host, kind, pod.Mount{Path: path.Clean(d.Path)})
	}
	for _, m := range e.Mounts {
		mount := pod.Mount{Path: path.Clean(m.Path)}
		for _, option := range m.Options {
			switch option {
			case "ro":
				mount.ReadOnly = true
			case "nosuid", "nodev", "noexec":
				mount.Options = append(mount.Options, option)
			case "rw", "bind", "rbind", "private", "rprivate", "suid", "dev", "exec", "relatime":
			default:
				return fmt.Errorf("the mount of %s has the unknown option %s", m.Host, option)
			}
		}
		addHostFile(plan, c, m.Host, "", mount)
	}
	for _, kv := range e.Env {
		name, value, _ := strings.Cut(kv, "=")
		c.Vars = slices.DeleteFunc(c.Vars, func(v pod.EnvVar) bool { return v.Name == name && v.From != nil && v.From.Text != nil })
		c.Vars = append(c.Vars, pod.EnvVar{Name: name, From: &pod.EnvRef{Text: &value}})
	}
	for _, g := range e.Groups {
		if g != 0 && !slices.Contains(c.SupplementalGroups, g) {
			c.SupplementalGroups = append(c.SupplementalGroups, g)
		}
	}
	for _, h := range e.Hooks {
		c.Hooks = append(c.Hooks, pod.Hook(h))
	}
	slices.SortStableFunc(c.Mounts, func(a, b pod.Mount) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	return nil
}

// addHostFile mounts a file or directory of the host, unless the container has a mount at that path. The
// volume's name is one that a manifest cannot have.
func addHostFile(plan *pod.Plan, c *pod.Container, host, kind string, m pod.Mount) {
	if slices.ContainsFunc(c.Mounts, func(have pod.Mount) bool { return have.Path == m.Path }) {
		return
	}
	m.Volume = "cdi:" + host
	if !slices.ContainsFunc(plan.Volumes, func(v pod.Volume) bool { return v.Name == m.Volume }) {
		plan.Volumes = append(plan.Volumes, pod.Volume{Name: m.Volume, Kind: pod.HostPath, Path: path.Clean(host), PathType: kind})
	}
	c.Mounts = append(c.Mounts, m)
}
