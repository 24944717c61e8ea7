package admission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// HeldDevice is a device that a container of another pod has.
type HeldDevice struct {
	Name string // vendor.com/class=name
	Pod  string
}

// AssignDevices chooses the devices that containers request by number, and adds their edits to the Plan. A
// device belongs to one container, but app containers use the devices of init containers again, as with the kubelet.
// The devices that the Plan already has are preferred.
func AssignDevices(env *cmdutil.Env, plan *pod.Plan, p *corev1.Pod, held []HeldDevice) error {
	dirs := deviceDirs(env.Getenv)
	kinds, broken := cdi.Kinds(dirs)
	a := newAssigner(kinds, p, held)
	var errs []error
	err := giveDevices(p, plan, dirs, cdi.Find, true, func(spec *corev1.Container, c *pod.Container) {
		if err := a.container(spec, c); err != nil {
			c.Devices = nil
			errs = append(errs, report.New(report.Failure, deviceHint(dirs), "container %s of pod %s: %w", c.Name, plan.Name, err))
		}
	})
	if len(errs) > 0 {
		errs = append(errs, broken)
	}
	return errors.Join(append(errs, err)...)
}

// DeviceKinds returns the kinds of devices that containers can request by number. The error names every description that
// cannot be read.
func DeviceKinds(getenv func(string) string) ([]cdi.Kind, error) {
	return cdi.Kinds(deviceDirs(getenv))
}

// deviceHint is the hint of errors about devices.
func deviceHint(dirs []string) string {
	return "podrun doctor lists the devices; they are described by the files of the Container Device Interface in " + strings.Join(dirs, ", ")
}

// assigner chooses the devices of one pod, container by container.
type assigner struct {
	p        *corev1.Pod
	kinds    map[string]*cdi.Kind
	holder   map[string]string // of units, by their CDI names
	reusable map[string]bool   // units of init containers, which end before the next container starts
}

func newAssigner(kinds []cdi.Kind, p *corev1.Pod, held []HeldDevice) *assigner {
	a := &assigner{p: p, kinds: map[string]*cdi.Kind{}, holder: map[string]string{}, reusable: map[string]bool{}}
	for i := range kinds {
		a.kinds[kinds[i].Name] = &kinds[i]
	}
	for _, h := range held {
		a.hold(h.Name, "pod "+h.Pod)
	}
	for c := range podutil.Containers(&p.Spec) {
		for _, name := range podutil.DeviceNames(p, c) {
			a.hold(name, "container "+c.Name+" of pod "+p.Name)
		}
	}
	return a
}

func (a *assigner) hold(name, by string) {
	kind, device, _ := strings.Cut(name, "=")
	if k := a.kinds[kind]; k != nil && k.Unit(device) != "" {
		a.holder[kind+"="+k.Unit(device)] = by
	}
}

// container sets the devices of one container. Containers are visited in the order of the Plan.
func (a *assigner) container(spec *corev1.Container, c *pod.Container) error {
	before := c.Devices
	c.Devices = podutil.DeviceNames(a.p, spec)
	init := slices.ContainsFunc(a.p.Spec.InitContainers, func(container corev1.Container) bool { return container.Name == spec.Name })
	ends := init && ptr.Deref(spec.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
	var errs []error
	for _, count := range podutil.DeviceCounts(spec) {
		units, err := a.pick(count, before)
		errs = append(errs, err)
		for _, name := range units {
			a.holder[name], a.reusable[name] = "container "+c.Name+" of pod "+a.p.Name, ends
		}
		c.Devices = append(c.Devices, units...)
	}
	return errors.Join(errs...)
}

// pick returns free units: first the units of ended init containers, then the units in before.
func (a *assigner) pick(count podutil.DeviceCount, before []string) ([]string, error) {
	k := a.kinds[count.Kind]
	if k == nil {
		return nil, fmt.Errorf("no file describes devices of the kind %s", count.Kind)
	}
	var reused, kept, free, used []string
	for _, unit := range k.Units {
		name := count.Kind + "=" + unit
		switch by := a.holder[name]; {
		case a.reusable[name]:
			reused = append(reused, name)
		case by != "":
			used = append(used, name+" by "+by)
		case slices.Contains(before, name):
			kept = append(kept, name)
		default:
			free = append(free, name)
		}
	}
	choice := slices.Concat(reused, kept, free)
	switch {
	case len(k.Units) < count.Count:
		return nil, fmt.Errorf("it requests %s: %d, and there are %d", count.Kind, count.Count, len(k.Units))
	case len(choice) < count.Count:
		return nil, fmt.Errorf("it requests %s: %d, and %d of %d are free; in use: %s", count.Kind, count.Count, len(choice), len(k.Units), strings.Join(used, ", "))
	}
	return choice[:count.Count], nil
}

// nvidiaControl is a device node of every machine with NVIDIA's driver.
const nvidiaControl = "/dev/nvidiactl"

// DevicesFinding returns the CDI devices that containers can have.
func DevicesFinding(getenv func(string) string) host.Finding {
	dirs := deviceDirs(getenv)
	kinds, err := cdi.Kinds(dirs)
	var found []string
	nvidia := false
	for _, k := range kinds {
		found = append(found, fmt.Sprintf("%s: %s (%s)", k.Name, strings.Join(k.Devices, ", "), strings.Join(k.Files, ", ")))
		nvidia = nvidia || strings.HasPrefix(k.Name, "nvidia.com/")
	}
	place := dirs[0]
	if os.Geteuid() != 0 {
		place = dirs[len(dirs)-1]
	}
	generate := "nvidia-ctk cdi generate --output=" + filepath.Join(place, "nvidia.yaml")
	f := host.Finding{Level: host.OK, Detail: strings.Join(found, "; ")}
	if len(found) == 0 {
		f.Detail = "no CDI devices are described in " + strings.Join(dirs, ", ") + "; for NVIDIA GPUs: " + generate
	}
	_, nerr := os.Stat(nvidiaControl)
	switch {
	case err != nil:
		f.Level, f.Hint = host.Warning, "repair or remove the file; for NVIDIA GPUs: "+generate
		f.Detail += "; unreadable: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	case nerr == nil && !nvidia:
		f.Level, f.Hint = host.Note, generate
	}
	return f
}
