package layer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Confine restricts the process, with all of its threads, to dir. Even if a layer exploits the unpacker,
// there is nothing else to write, read or call. The process has mount and network namespaces of its own, and
// a user namespace unless it was started by root (see reexec.Spec).
//
// flags are additional mount flags of dir: MS_RDONLY for a process that writes nothing.
func Confine(dir string, maxFile int64, flags uintptr) error {
	all, err := openThreads()
	if err != nil {
		return err
	}
	defer all.tasks.Close()
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
		{"drop privileges", func() error { return all.dropCapabilities(keptCapabilities) }},
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

// keptCapabilities are those that the owners, modes and file capabilities of a layer need. A whiteout's
// device node needs none.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_FSETID | 1<<unix.CAP_SETFCAP
