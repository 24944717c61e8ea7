package delegation

import (
	"os"
	"path/filepath"
	"strconv"
)

// Manager is the service manager that can give the calling user a cgroup of its own: the user's, or
// for root the system's.
type Manager struct {
	Socket string // its own D-Bus socket, which needs no bus daemon
	Cgroup string // the cgroups that it delegates lie below this one
	Slice  string // the slice of the user's programs
}

// FindManager finds the manager's socket without connecting to it.
func FindManager() (Manager, bool) {
	return host(nil).manager(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR"))
}

func (v hostView) manager(uid int, runtimeDir string) (Manager, bool) {
	id := strconv.Itoa(uid)
	user := filepath.Join(Mount, "user.slice", "user-"+id+".slice", "user@"+id+".service")
	// Without a login (cron, su) no variable names the runtime directory.
	places := []Manager{
		{filepath.Join(runtimeDir, "systemd/private"), user, "app.slice"},
		{filepath.Join("/run/user", id, "systemd/private"), user, "app.slice"},
	}
	if uid == 0 {
		places = []Manager{{"/run/systemd/private", Mount, "system.slice"}}
	}
	for _, m := range places {
		if st, err := os.Stat(v.root + m.Socket); err == nil && st.Mode().Type() == os.ModeSocket && filepath.IsAbs(m.Socket) {
			return m, true
		}
	}
	return Manager{}, false
}

// Own returns the cgroup of the calling process if children may be made in it: it is ours, and
// contains only the calling process and those named by with. The error means that no process on
// this host has a cgroup to manage; it is a *NotDelegated unless /proc could not be read.
func Own(with ...int) (s Subtree, ok bool, err error) { return host(with).alone() }

func (v hostView) alone() (Subtree, bool, error) {
	dir, err := v.ownCgroup()
	if err != nil || !v.manageable(dir) {
		return Subtree{}, false, err
	}
	free, _, err := v.free(dir)
	if err != nil || !free {
		return Subtree{}, false, err
	}
	s := Subtree{dir, v.controllers(dir)}
	return s, len(s.Controllers) > 0, nil
}

// Preview returns the cgroup below which a pod that the caller starts now will live. It is the first of
//   - the caller's cgroup,
//   - a new scope of the service manager,
//   - the nearest cgroup that Find finds.
//
// Preview changes nothing. The error is as for Find.
func Preview() (Subtree, error) {
	v := host(nil)
	s, ok, err := v.alone()
	if ok || err != nil {
		return s, err
	}
	if m, ok := FindManager(); ok && v.manageable(m.Cgroup) {
		return Subtree{m.Cgroup, v.controllers(m.Cgroup)}, nil
	}
	return find(v)
}

// MoveToLeaf prepares dir, a cgroup that was just made for the process pid, as its Subtree: it
// moves the process to the leaf.
func MoveToLeaf(dir string, pid int) error { return toLeaf(dir, []int{pid}) }

// Of returns the cgroup of a process, /sys/fs/cgroup/…
func Of(pid int) (string, error) {
	return host(nil).cgroupOf(strconv.Itoa(pid))
}
