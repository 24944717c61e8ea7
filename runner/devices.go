package runner

import (
	"os"

	"github.com/podrun/podrun/volumes"
)

// mountDev makes the container's /dev: with the host's shared memory and queues if the
// pod has those, and with its devices if the container is privileged.
func (x *container) mountDev(s *sandbox) error {
	t := s.templates().Templates()
	t.Label = x.plan.FileLabel
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
		if err := volumes.AddDevice(x.dev(s), path, path); err != nil {
			return err
		}
	}
	return nil
}

// hostDir is path if the host has it.
func hostDir(path string) string {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return ""
	}
	return path
}
