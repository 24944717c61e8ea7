// Package admission adapts a Plan to this host, or refuses it: user IDs, devices, huge pages, seccomp,
// AppArmor, SELinux and Pod Security Standards.
package admission

import (
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// Adapt adapts a Plan to this host, or returns why this host cannot run it. It ends the prespawned process
// before a check that counts the processes in this cgroup.
func Adapt(env *cmdutil.Env, preparation *cmdutil.Preparation, plan *pod.Plan, p *corev1.Pod) error {
	apparmor, selinux := env.Deps.SecurityModules()
	ids := env.Deps.PodIDs()
	checkHugePages := func(need map[string]int64) error {
		preparation.End()
		return env.Deps.CheckHugePages(need)
	}
	return errors.Join(addDevices(p, plan, deviceDirs(env.Getenv), cdi.Find), refuseIDs(plan, ids), refuseUsers(plan, ids), RefuseHostPID(env, preparation, plan), refuseHugePages(plan, checkHugePages), refuseMasquerade(plan, os.Geteuid()),
		applyAppArmor(plan, apparmor), applySELinux(plan, p, selinux))
}

// RefuseHostPID refuses a pod in the host's PID namespace if it would have no cgroup. The kernel does not
// kill such a pod with its first process, so without a cgroup its other processes could survive a kill of
// the monitor and the pod init.
func RefuseHostPID(env *cmdutil.Env, preparation *cmdutil.Preparation, plan *pod.Plan) error {
	if !plan.HostPID {
		return nil
	}
	preparation.End() // the next check counts the processes in this cgroup
	if found, ok := host.FindByName(env.Deps.CheckHost(env.HostSetup()), host.Limits); ok && found.Level != host.OK {
		return report.New(report.Host, found.Hint, "pod %s: hostPID requires a cgroup of the pod's own, to kill its processes: %s", plan.Name, found.Detail)
	}
	return nil
}

// defaultProfiles are AppArmor profiles of container runtimes, podrun's own first. An ordinary user
// cannot load profiles, but can change to one that is loaded.
var defaultProfiles = []string{"podrun-default", "containers-default", "cri-containerd.apparmor.d", "docker-default"}

// applyAppArmor resolves the Plan's default profile on this host. It refuses profiles that containers
// could not change to, as the kubelet does at admission.
func applyAppArmor(plan *pod.Plan, has host.AppArmor) error {
	var errs []error
	for _, list := range plan.All() {
		for i := range list {
			errs = append(errs, applyAppArmorTo(plan, &list[i], has))
		}
	}
	return errors.Join(errs...)
}

func applyAppArmorTo(plan *pod.Plan, c *pod.Container, has host.AppArmor) error {
	refuse := func(hint, format string, args ...any) error {
		return report.New(report.Host, hint, "container %s of pod %s cannot have its AppArmor profile: "+format, append([]any{c.Name, plan.Name}, args...)...)
	}
	switch {
	case c.AppArmor == "":
		return nil
	case !has.Enabled:
		return refuse("omit appArmorProfile, or set type: Unconfined; or boot with lsm=…,apparmor", "AppArmor is not enabled on the host")
	case c.AppArmor != pod.AppArmorDefault:
		if err := has.Try(c.AppArmor); err != nil {
			return refuse("as root: apparmor_parser -r FILE, with its file below /etc/apparmor.d; aa-status lists the loaded profiles", "%s: %w", c.AppArmor, err)
		}
		return nil
	}
	i := slices.IndexFunc(defaultProfiles, func(name string) bool { return has.Try(name) == nil })
	if i < 0 {
		return refuse("as root: load a profile named podrun-default, as described in docs/how-to/when-something-is-missing.md, or omit appArmorProfile",
			"no default profile is loaded, and only root can load one")
	}
	c.AppArmor = defaultProfiles[i]
	return nil
}

// refuseHugePages refuses a Plan that requests huge pages which the pod cannot have here, with the
// reason that check returns. Only root can mount volumes of huge pages.
func refuseHugePages(plan *pod.Plan, check func(need map[string]int64) error) error {
	if len(plan.Resources.HugePages) == 0 {
		return nil
	}
	if err := check(plan.Resources.HugePages); err != nil {
		return fmt.Errorf("pod %s requests huge pages: %w", plan.Name, err)
	}
	return refuseHugeVolumes(plan, os.Getuid())
}

func refuseHugeVolumes(plan *pod.Plan, uid int) error {
	for _, v := range plan.Volumes {
		if v.Kind == pod.EmptyDirHugePages && uid != 0 {
			return report.New(report.Failure, "run the pod as root, or let its program allocate huge pages itself, with MAP_HUGETLB or MFD_HUGETLB",
				"volume %s of pod %s has huge pages: only root can mount hugetlbfs", v.Name, plan.Name)
		}
	}
	return nil
}

// refuseMasquerade refuses a network that only root's pods can have.
func refuseMasquerade(plan *pod.Plan, uid int) error {
	if plan.Network != pod.NetworkMasquerade || uid == 0 {
		return nil
	}
	return report.New(report.Failure, "run the pod as root, or with another network: podrun up --network tproxy",
		"pod %s requests the network %s: only root may change the host's network", plan.Name, plan.Network)
}
