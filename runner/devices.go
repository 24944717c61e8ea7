package runner

import (
	"os"
	"strings"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// mountDev makes the container's /dev: with the host's shared memory and queues if the
// pod has those, and with its devices if the container is privileged.
func (x *container) mountDev(s *sandbox) error {
	t := s.templates().Templates()
	t.Label = x.plan.FileLabel
	if ownTerminals(s.plan) {
		t.Pts = strings.Join(terminals(s.idMapped("gid_map", 5)), ",")
	}
	if s.plan.HostIPC {
		t.Shm, t.Mqueue = hostDir("/dev/shm"), hostDir("/dev/mqueue")
	}
	if err := t.MountDev(x.dev(s)); err != nil {
		return err
	}
	if err := s.own(x.dev(s)); err != nil {
		return err
	}
	if !x.plan.Privileged {
		return nil
	}
	devices, err := volumes.HostDevices()
	if err != nil {
		return err
	}
	for _, path := range devices {
		if !groupsAllowed() && volumes.IsOpenedByGroup(path) {
			continue
		}
		if err := volumes.AddDevice(x.dev(s), path, path); err != nil {
			return err
		}
	}
	return nil
}

// ownTerminals says whether the supervisor mounts a container's terminals, which takes
// libcontainer fifty system calls: they belong to the user namespace of who mounts them.
func ownTerminals(plan *pod.Plan) bool { return plan.Users == nil }

// terminals are the options of a container's terminals; group: group 5 is mapped, which they
// can belong to.
func terminals(group bool) []string {
	options := []string{"newinstance", "ptmxmode=0666", "mode=0620"}
	if group {
		options = append(options, "gid=5")
	}
	return options
}

// hostDir is path if the host has it.
func hostDir(path string) string {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return ""
	}
	return path
}
