package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
)

// exitTimeout is how long killed processes may take to exit; one in an uninterruptible wait may never
// do so.
const exitTimeout = 10 * time.Second

// Remove kills every process below a pod's cgroup and removes the cgroups, the deepest first, and
// podrun's own leaf beside it if that has no processes. It accepts incomplete trees, leftovers, and
// a missing tree. path is a Pod's Path; it refuses paths that are not a cgroup below the mount.
func Remove(path string) error {
	if filepath.Clean(path) != path || !strings.HasPrefix(path, delegation.Mount+"/") || filepath.Base(path) == delegation.Leaf {
		return fmt.Errorf("remove cgroup %s: not a pod's cgroup", path)
	}
	var st unix.Statfs_t
	switch err := unix.Statfs(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return delegation.RemoveLeaf(filepath.Dir(path))
	case err != nil:
		return fmt.Errorf("remove cgroup %s: %w", path, err)
	case st.Type != unix.CGROUP2_SUPER_MAGIC:
		return fmt.Errorf("remove cgroup %s: not a cgroup v2", path)
	}
	if err := kill(path); err != nil {
		return err
	}
	if err := awaitEmpty(path, exitTimeout); err != nil {
		return err
	}
	if err := removeTree(path); err != nil {
		return err
	}
	return delegation.RemoveLeaf(filepath.Dir(path))
}

// kill kills a whole tree; a missing one is not an error.
func kill(path string) error {
	err := delegation.Write(path, "cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) { // before Linux 5.14, or no such cgroup
		err = killEach(path)
	}
	return wrap(err, "kill cgroup %s", path)
}

// killEach freezes the tree, so that no process can fork, and kills the processes in it.
func killEach(path string) error {
	if err := missingIsFine(delegation.Write(path, "cgroup.freeze", "1")); err != nil {
		return err
	}
	return errors.Join(walk(path, killProcs), missingIsFine(delegation.Write(path, "cgroup.freeze", "0")))
}

func missingIsFine(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func killProcs(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	for _, s := range strings.Fields(string(b)) {
		// A process outside of this pid namespace appears as 0, which kill(2) would take for the
		// own process group.
		if pid, err := strconv.Atoi(s); err == nil && pid > 0 {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// awaitEmpty waits until the tree has no processes: the kernel wakes a poll on cgroup.events when that
// changes.
func awaitEmpty(path string, limit time.Duration) error {
	f, err := os.Open(filepath.Join(path, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch cgroup %s: %w", path, err)
	}
	defer f.Close()
	for end := time.Now().Add(limit); ; {
		var b [256]byte
		n, err := f.ReadAt(b[:], 0)
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		if n, err := keyed(string(b[:n]), "populated"); err != nil || n == 0 {
			return wrap(err, "watch cgroup %s", path)
		}
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("remove cgroup %s: its processes do not end", path)
		}
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch cgroup %s: %w", path, err)
		}
	}
}

// removeLeftovers removes the leftovers of an earlier pod of the same name, if they have no processes.
func removeLeftovers(path string) error {
	b, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at cgroup %s: %w", path, err)
	}
	if n, err := keyed(string(b), "populated"); err != nil || n != 0 {
		return fmt.Errorf("the cgroup %s is in use by another pod", path)
	}
	return removeTree(path)
}

// removeTree removes directories only: a cgroup's files disappear with it.
func removeTree(path string) error {
	err := walk(path, func(dir string) error { return missingIsFine(os.Remove(dir)) })
	return wrap(err, "remove cgroup %s", path)
}

// walk calls do for every directory of a tree, children before parents.
func walk(dir string, do func(dir string) error) error {
	entries, err := os.ReadDir(dir)
	if missingIsFine(err) != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := walk(filepath.Join(dir, e.Name()), do); err != nil {
				return err
			}
		}
	}
	return do(dir)
}

func wrap(err error, format, path string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", path, err)
}
