package container

import (
	"os"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// mountDev makes the container's /dev. It has the host's shared memory and queues if the pod uses the
// host's IPC namespace, and the host's devices if the container is privileged.
func (x *Container) mountDev(s *sandbox.Sandbox) error {
	t := s.SharedMountSpec().Paths()
	t.Label = x.Plan.FileLabel
	if mountsDevpts(s.Plan) {
		t.Pts = strings.Join(devptsOptions(s.IDMapped("gid_map", 5)), ",")
	}
	if s.Plan.HostIPC {
		t.Shm, t.Mqueue = existingDir("/dev/shm"), existingDir("/dev/mqueue")
	}
	if err := t.MountDev(x.devDir(s)); err != nil {
		return err
	}
	if err := s.ChownToPod(x.devDir(s)); err != nil {
		return err
	}
	if !x.Plan.Privileged {
		return nil
	}
	devices, err := volumes.HostDevices()
	if err != nil {
		return err
	}
	for _, path := range devices {
		if !sandbox.SetgroupsAllowed() && volumes.IsOpenedByGroup(path) {
			continue
		}
		if err := volumes.AddDevice(x.devDir(s), path, path); err != nil {
			return err
		}
	}
	return nil
}

// mountsDevpts reports whether the supervisor mounts a container's devpts, because libcontainer needs fifty
// system calls for that. It cannot for a pod with a user namespace of its own: a devpts belongs to the user
// namespace of the process that mounts it.
func mountsDevpts(plan *pod.Plan) bool { return plan.Users == nil }

// devptsOptions returns the mount options of a container's devpts. group means that group 5 is mapped, so
// that terminals can belong to it.
func devptsOptions(group bool) []string {
	options := []string{"newinstance", "ptmxmode=0666", "mode=0620"}
	if group {
		options = append(options, "gid=5")
	}
	return options
}

// existingDir returns path if the host has it, otherwise "".
func existingDir(path string) string {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return ""
	}
	return path
}
