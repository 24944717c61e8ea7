package hostdeps

import (
	"os"
	"runtime"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// launcher runs the re-exec entry points of pods in the supervisor program.
type launcher struct {
	dirs     store.Dirs
	programs podinit.Programs
}

// Start starts the processes of a pod, and returns a warning for the user, or "".
func (k *launcher) Start(p store.Pod, plan *pod.Plan, with cmdutil.StartOptions) (string, error) {
	s := podinit.Options{Record: with.Record, Programs: k.programs, Dirs: k.dirs, Pod: p, Hostname: plan.KernelHostname(), Lock: with.Lock, Ports: with.Ports, Notify: with.Notify, First: with.First, OwnUserNS: plan.OwnUserNS && os.Geteuid() != 0}
	s.HostPID = plan.HostPID
	if u := plan.Users; u != nil {
		s.Users = &host.Range{First: uint64(u.First), Count: uint64(u.Count)}
	}
	warningAfterStart := useScope(&s, plan)
	err := podinit.Start(s)
	return warningAfterStart(), err
}

// Remove removes the files of a pod that has ended.
func (k *launcher) Remove(p store.Pod) error {
	defer runtime.KeepAlive(k.programs.InUse)
	return podinit.RemovePod(k.programs.Supervisor, k.dirs, p)
}

// RemoveVolume removes the directory of a claim or of a PersistentVolume.
func (k *launcher) RemoveVolume(dir string) error {
	defer runtime.KeepAlive(k.programs.InUse)
	return podinit.RemoveVolume(k.programs.Supervisor, dir)
}
