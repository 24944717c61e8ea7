package image

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// confine shuts the calling goroutine's thread, and with it the process, into dir:
// whatever a layer talks the unpacker into, there is nothing else to write to, to
// read or to call. The process has mount and network namespaces of its own, and a
// user namespace unless it was started by root: stage.Spec.
//
// flags are more mount flags of dir: MS_RDONLY for who has nothing to write.
//
// The goroutine stays locked to its thread, since capabilities belong to threads.
func confine(dir string, maxFile int64, flags uintptr) error {
	runtime.LockOSThread()
	steps := []struct {
		what string
		do   func() error
	}{
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"bind " + dir, func() error { return unix.Mount(dir, dir, "", unix.MS_BIND, "") }},
		{"make devices and programs inert", func() error {
			return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC|flags, "")
		}},
		{"enter " + dir, func() error { return unix.Chdir(dir) }},
		{"make it the root", func() error { return unix.PivotRoot(".", ".") }},
		{"unmount everything else", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"enter the root", func() error { return unix.Chdir("/") }},
		{"limit resources", func() error { return limitResources(maxFile) }},
		{"forbid new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"drop capabilities", dropCapabilities},
		{"filter system calls", filterSyscalls},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("confine the unpacker: %s: %w", s.what, err)
		}
	}
	return nil
}

func limitResources(maxFile int64) error {
	limits := map[int]uint64{
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_NOFILE: 64,
		unix.RLIMIT_FSIZE:  uint64(maxFile),
	}
	for which, n := range limits {
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	return nil
}

// keptCapabilities are what owners, modes and file capabilities of a layer need.
// A whiteout's device node needs none.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID | 1<<unix.CAP_SETFCAP

func dropCapabilities() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // the low 32 capabilities, the high ones
	data[0].Permitted = keptCapabilities & 0xffffffff
	data[0].Effective = data[0].Permitted
	data[1].Permitted = keptCapabilities >> 32
	data[1].Effective = data[1].Permitted
	return unix.Capset(&hdr, &data[0])
}
