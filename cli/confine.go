package cli

import (
	"errors"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// suit makes a plan what it has to be on this host, or says why it cannot be here.
func (f *front) suit(plan *pod.Plan, p *corev1.Pod) error {
	apparmor, selinux := f.rooms.modules()
	ids := f.rooms.ids()
	return errors.Join(giveDevices(p, plan, f.deviceDirs(), cdi.Find), refuseIDs(plan, ids), refuseUsers(plan, ids), f.refuseHostPID(plan), refuseHugePages(plan, f.hugePages), refuseMasquerade(plan, os.Geteuid()),
		confineByAppArmor(plan, apparmor), confineByLabels(plan, p, selinux))
}

// refuseHostPID refuses a pod in the host's PID namespace where it would have no cgroup: the
// kernel does not end such a pod with its first process, so nothing would be sure to find
// what it has left when guard and keeper are killed.
func (f *front) refuseHostPID(plan *pod.Plan) error {
	if !plan.HostPID {
		return nil
	}
	f.foresight.end() // what lives in this cgroup is looked at again
	if found, ok := host.FindByName(f.rooms.check(f.setup()), host.Limits); ok && found.Level != host.OK {
		return report.New(report.Internal, found.Cure, "pod %s: hostPID takes a cgroup of the pod's own, by which all of its processes are ended: %s", plan.Name, found.Detail)
	}
	return nil
}

// defaultProfiles are AppArmor profiles of container runtimes, podrun's own first. An
// ordinary user can load none, but change to one that is loaded.
var defaultProfiles = []string{"podrun-default", "containers-default", "cri-containerd.apparmor.d", "docker-default"}

// confineByAppArmor finds what the plan's default profile is here, and refuses profiles
// that containers could not change to, as the kubelet does at admission.
func confineByAppArmor(plan *pod.Plan, has host.AppArmor) error {
	var errs []error
	for _, list := range plan.All() {
		for i := range list {
			errs = append(errs, confineContainer(plan, &list[i], has))
		}
	}
	return errors.Join(errs...)
}

func confineContainer(plan *pod.Plan, c *pod.Container, has host.AppArmor) error {
	refuse := func(hint, format string, args ...any) error {
		return report.New(report.Internal, hint, "container %s of pod %s cannot have its AppArmor profile: "+format, append([]any{c.Name, plan.Name}, args...)...)
	}
	switch {
	case c.AppArmor == "":
		return nil
	case !has.Enabled:
		return refuse("leave appArmorProfile out, or set type: Unconfined; or boot with lsm=…,apparmor", "AppArmor is not enabled on the host")
	case c.AppArmor != pod.AppArmorDefault:
		if err := has.Try(c.AppArmor); err != nil {
			return refuse("as root: apparmor_parser -r the file below /etc/apparmor.d that has it; aa-status lists what is loaded", "%s: %w", c.AppArmor, err)
		}
		return nil
	}
	i := slices.IndexFunc(defaultProfiles, func(name string) bool { return has.Try(name) == nil })
	if i < 0 {
		return refuse("as root: load a profile named podrun-default, as docs/how-to/when-something-is-missing.md has it, or leave appArmorProfile out",
			"no default profile is loaded, and only root can load one")
	}
	c.AppArmor = defaultProfiles[i]
	return nil
}
