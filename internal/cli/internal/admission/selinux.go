package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// SELinuxFinding returns the SELinux label of containers that request none on this host.
func SELinuxFinding(has host.SELinux) host.Finding {
	if !has.Enabled {
		return host.Finding{Level: host.OK, Detail: "SELinux is not enabled"}
	}
	l := &labeler{plan: &pod.Plan{}, has: has}
	process, _, err := l.find(corev1.SELinuxOptions{}, false)
	if err != nil {
		return host.Finding{Level: host.Note, Detail: "containers keep the label of the user's programs: " + err.Error(),
			Hint: "install the policy for containers (package container-selinux, if available), and log in again"}
	}
	parts := strings.SplitN(process, ":", 4) // the fourth part, the level, differs for each pod
	detail := "containers have the label " + strings.Join(parts[:min(3, len(parts))], ":") + ", with categories of their pod"
	if has.Enforcing {
		detail += "; the policy is enforced"
	} else {
		detail += "; the policy is permissive, so nothing is enforced"
	}
	return host.Finding{Level: host.OK, Detail: detail}
}

// privilegedType is the SELinux type that container runtimes use for privileged containers.
const privilegedType = "spc_t"

// labeler sets a Plan's SELinux labels for this host.
type labeler struct {
	plan  *pod.Plan
	spec  *corev1.PodSpec
	ofPod corev1.SELinuxOptions
	has   host.SELinux
	level map[string]bool // the containers whose level was requested
}

// applySELinux sets the SELinux labels of containers and files. Without SELinux nothing has labels, and
// the manifest's options are ignored, as in other runtimes.
func applySELinux(plan *pod.Plan, p *corev1.Pod, has host.SELinux) error {
	if !has.Enabled {
		return nil
	}
	l := &labeler{plan: plan, spec: &p.Spec, has: has, level: map[string]bool{}}
	if sc := p.Spec.SecurityContext; sc != nil && sc.SELinuxOptions != nil {
		l.ofPod = *sc.SELinuxOptions
	}
	var err error
	if _, plan.FileLabel, err = l.labels(l.ofPod, false); err != nil {
		return l.refuse("spec.securityContext.seLinuxOptions", err)
	}
	var errs []error
	for _, list := range plan.All() {
		for i := range list {
			errs = append(errs, l.container(&list[i]))
		}
	}
	l.share()
	for i := range plan.Volumes {
		errs = append(errs, l.volume(&plan.Volumes[i]))
	}
	return errors.Join(errs...)
}

func (l *labeler) refuse(what string, err error) error {
	return report.New(report.Host, "omit it, or request a label of the host's policy: processes and files of containers have one by default where it has any",
		"pod %s cannot have its SELinux labels: %s: %w", l.plan.Name, what, err)
}

// container sets the labels of one container. It inherits the pod's options, as with CRI-O, including the
// categories, so that containers of a pod share their files.
func (l *labeler) container(c *pod.Container) (err error) {
	var o corev1.SELinuxOptions
	for _, m := range slices.Concat(l.spec.InitContainers, l.spec.Containers) {
		if m.Name == c.Name && m.SecurityContext != nil && m.SecurityContext.SELinuxOptions != nil {
			o = *m.SecurityContext.SELinuxOptions
		}
	}
	o = corev1.SELinuxOptions{
		User: cmp.Or(o.User, l.ofPod.User), Role: cmp.Or(o.Role, l.ofPod.Role),
		Type: cmp.Or(o.Type, l.ofPod.Type), Level: cmp.Or(o.Level, l.ofPod.Level),
	}
	l.level[c.Name] = o.Level != ""
	if c.Privileged && o.Type == "" {
		free := o
		free.Type = privilegedType
		if c.Label, c.FileLabel, err = l.labels(free, c.NoNewPrivileges); err == nil {
			return nil
		}
		if o == (corev1.SELinuxOptions{}) { // it keeps the user's label: no runtime confines it further
			c.Label, c.FileLabel = "", l.plan.FileLabel
			return nil
		}
	}
	if c.Label, c.FileLabel, err = l.labels(o, c.NoNewPrivileges); err != nil {
		return l.refuse("container "+c.Name+": securityContext.seLinuxOptions", err)
	}
	return nil
}

// share sets the labels of what all containers use: layers, and the files that podrun makes for the pod.
// Those have no categories if some container does not have the pod's.
func (l *labeler) share() {
	for _, list := range l.plan.All() {
		for i := range list {
			if list[i].FileLabel == "" {
				continue
			}
			l.plan.LayerLabel = l.has.Layers()
			if list[i].FileLabel != l.plan.FileLabel {
				l.plan.FileLabel = withoutCategories(l.plan.FileLabel)
			}
		}
	}
}

func withoutCategories(label string) string {
	parts := strings.SplitN(label, ":", 4)
	if len(parts) < 4 {
		return label
	}
	return strings.Join(append(parts[:3], "s0"), ":")
}

// labels returns the labels for options. It returns none if none are requested and the policy has none
// for containers, or none that this user's programs may change to.
func (l *labeler) labels(o corev1.SELinuxOptions, noNewPrivileges bool) (process, files string, err error) {
	process, files, err = l.find(o, noNewPrivileges)
	if err != nil {
		process, files = "", ""
	}
	if o == (corev1.SELinuxOptions{}) {
		err = nil
	}
	return process, files, err
}

// find returns the labels for options, or why there are none.
func (l *labeler) find(o corev1.SELinuxOptions, noNewPrivileges bool) (process, files string, err error) {
	var options []string
	for _, f := range [][2]string{{"user", o.User}, {"role", o.Role}, {"type", o.Type}, {"level", cmp.Or(o.Level, podLevel(l.plan))}} {
		if f[1] != "" {
			options = append(options, f[0]+":"+f[1])
		}
	}
	process, files, err = l.has.Labels(options)
	if err == nil && process == "" {
		err = errors.New("the host's policy has no labels for containers (no contexts/lxc_contexts)")
	}
	if err == nil {
		err = l.has.Try(process, files, noNewPrivileges)
	}
	return process, files, err
}

// podLevel returns categories for one pod. They are derived from its name, so that a recreated pod has
// the same ones and can use its old files in volumes.
func podLevel(plan *pod.Plan) string {
	const categories = 1024
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s", os.Getuid(), plan.Namespace, plan.Name))
	n := binary.BigEndian.Uint64(sum[:])
	low, high := n%categories, n/categories%(categories-1)
	if high >= low {
		high++
	}
	return fmt.Sprintf("s0:c%d,c%d", min(low, high), max(low, high))
}

// volume sets the label of a volume from the containers that mount it. A claim can be used by other pods
// too: like podman's volumes it has no categories, unless a container requests some.
func (l *labeler) volume(v *pod.Volume) error {
	if v.Kind == pod.HostPath {
		return nil
	}
	v.FileLabel = l.plan.FileLabel
	if v.Kind == pod.Files { // these share one file system
		return nil
	}
	by, level := "", l.ofPod.Level != ""
	for _, list := range l.plan.All() {
		for i := range list {
			c := &list[i]
			if c.FileLabel == "" || !slices.ContainsFunc(c.Mounts, func(m pod.Mount) bool { return m.Volume == v.Name }) {
				continue
			}
			if by != "" && v.FileLabel != c.FileLabel {
				return report.New(report.Host, "give them the same level and user in seLinuxOptions",
					"pod %s cannot have its SELinux labels: volume %s is mounted by the containers %s with the label %s, and %s with the label %s", l.plan.Name, v.Name, by, v.FileLabel, c.Name, c.FileLabel)
			}
			by, v.FileLabel = c.Name, c.FileLabel
			level = level || l.level[c.Name]
		}
	}
	if v.Kind == pod.ClaimVolume && !level {
		v.FileLabel = withoutCategories(v.FileLabel)
	}
	return nil
}
