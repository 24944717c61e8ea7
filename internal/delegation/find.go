package delegation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// hostView is the host as find reads it; tests use a directory instead.
type hostView struct {
	root     string                // "" or a fake root directory
	mount    func() (mount, error) // what is mounted at Mount
	writable func(path string) bool
	movable  []int // pids that may be moved
}

// hostMount reads what is mounted at Mount once: it does not change while a process lives, and the kernel takes a quarter
// of a millisecond to list fifty mounts.
var hostMount = sync.OnceValues(func() (mount, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mount{}, fmt.Errorf("find the cgroup mount: %w", err)
	}
	return parseMount(string(mounts)), nil
})

func host(with []int) hostView {
	return hostView{
		mount:    hostMount,
		writable: func(path string) bool { return unix.Access(path, unix.W_OK) == nil },
		movable:  append([]int{os.Getpid()}, with...),
	}
}

func find(v hostView) (Subtree, error) {
	dir, err := v.ownCgroup()
	if err != nil {
		return Subtree{}, err
	}
	var cause error
	for ; ; dir = filepath.Dir(dir) {
		if !v.manageable(dir) {
			if cause == nil {
				cause = v.foreign(dir)
			}
			return Subtree{}, cause
		}
		free, foreign, err := v.free(dir)
		if err != nil {
			return Subtree{}, err
		}
		if free {
			s := Subtree{dir, v.controllers(dir)}
			if len(s.Controllers) == 0 {
				return Subtree{}, v.lacks(s, wanted())
			}
			return s, nil
		}
		if cause == nil {
			cause = occupied(dir, foreign)
		}
		if dir == Mount {
			return Subtree{}, cause
		}
	}
}

// ownCgroup returns the calling process's cgroup, or its parent if that cgroup is a leaf.
func (v hostView) ownCgroup() (string, error) {
	dir, err := v.cgroupOf("self")
	if err == nil && filepath.Base(dir) == Leaf && v.manageable(filepath.Dir(dir)) {
		dir = filepath.Dir(dir)
	}
	return dir, err
}

// free reports whether no process prevents children with controllers, and the number of foreign
// processes that do.
func (v hostView) free(dir string) (bool, int, error) {
	_, foreign, err := v.procs(dir)
	return err == nil && (foreign == 0 || v.isRoot(dir)), foreign, err
}

// cgroupOf returns the cgroup of a process, below Mount.
func (v hostView) cgroupOf(pid string) (string, error) {
	b, err := os.ReadFile(v.root + "/proc/" + pid + "/cgroup")
	if os.IsNotExist(err) && pid == "self" {
		return "", noCgroups()
	}
	if err != nil {
		return "", fmt.Errorf("find the cgroup of process %s: %w", pid, err)
	}
	path, legacy, unified := parseCgroup(string(b))
	m, err := v.mount()
	if err != nil {
		return "", err
	}
	switch {
	case !m.unified && legacy:
		return "", v.versionOne(unified)
	case !unified || !m.unified:
		return "", notMounted()
	case m.readOnly:
		return "", mountedReadOnly()
	}
	rel, ok := relativeTo(path, m.root)
	if !ok {
		return "", outside(path)
	}
	return filepath.Join(Mount, rel), nil
}

// parseCgroup parses /proc/PID/cgroup: the v2 path, and whether v1 hierarchies with controllers are
// also in use.
func parseCgroup(text string) (path string, legacy, unified bool) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[0] == "0" && f[1] == "":
			path, unified = strings.TrimSuffix(f[2], " (deleted)"), true
		case !strings.HasPrefix(f[1], "name="):
			legacy = true
		}
	}
	return path, legacy, unified
}

type mount struct {
	unified  bool   // a cgroup2 file system
	root     string // the cgroup that is visible at Mount
	readOnly bool
}

// parseMount finds what is mounted at Mount in a mountinfo text; the last one lies on top.
func parseMount(text string) (found mount) {
	for line := range strings.Lines(text) {
		left, right, _ := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 6 || len(r) < 1 || l[4] != Mount {
			continue
		}
		found = mount{unified: r[0] == "cgroup2", root: l[3], readOnly: slices.Contains(strings.Split(l[5], ","), "ro")}
	}
	return found
}

// relativeTo makes path relative to the cgroup that is mounted. It returns false if path lies
// outside, as in another cgroup namespace ("/../x").
func relativeTo(path, root string) (string, bool) {
	if strings.HasPrefix(path, "/..") {
		return "", false
	}
	if root == "/" || strings.HasPrefix(root, "/..") {
		return path, true
	}
	rel, ok := strings.CutPrefix(path, root)
	if !ok || rel != "" && rel[0] != '/' {
		return "", false
	}
	return "/" + strings.TrimPrefix(rel, "/"), true
}

// manageable reports whether we may make children of dir, enable controllers for them and move
// processes below it.
func (v hostView) manageable(dir string) bool {
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if !v.writable(filepath.Join(v.root, dir, file)) {
			return false
		}
	}
	return true
}

// isRoot distinguishes the kernel's root cgroup, which alone may have both processes and children
// with controllers, from the root of a cgroup namespace.
func (v hostView) isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(v.root, dir, "cgroup.type"))
	return dir == Mount && os.IsNotExist(err)
}

// procs returns the processes directly in dir that we may move, and counts the others. A process
// outside our PID namespace has pid 0 there, and counts as another one.
func (v hostView) procs(dir string) (movable []int, foreign int, err error) {
	b, err := os.ReadFile(filepath.Join(v.root, dir, "cgroup.procs"))
	if err != nil {
		return nil, 0, fmt.Errorf("list processes of cgroup %s: %w", dir, err)
	}
	for _, word := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, 0, fmt.Errorf("list processes of cgroup %s: %w", dir, err)
		}
		if pid > 0 && slices.Contains(v.movable, pid) {
			movable = append(movable, pid)
		} else {
			foreign++
		}
	}
	return movable, foreign, nil
}

// controllers returns the wanted controllers that children of dir can have: dir has them, or an ancestor
// has them and every cgroup between permits us to enable them.
func (v hostView) controllers(dir string) []string {
	have := v.available(dir)
	return slices.DeleteFunc(wanted(), func(c string) bool { return !slices.Contains(have, c) })
}

// available returns all controllers that children of dir can have, some of them twice.
func (v hostView) available(dir string) (have []string) {
	for d := dir; ; d = filepath.Dir(d) {
		b, err := os.ReadFile(filepath.Join(v.root, d, "cgroup.controllers"))
		if err != nil {
			break
		}
		have = append(have, strings.Fields(string(b))...)
		if d == Mount || !v.manageable(filepath.Dir(d)) {
			break
		}
	}
	return have
}

// With returns s with a controller that not every pod needs, if children of s can have it.
func (s Subtree) With(controller string) Subtree { return host(nil).also(s, controller) }

func (v hostView) also(s Subtree, controller string) Subtree {
	if !s.Has(controller) && slices.Contains(v.available(s.Path), controller) {
		s.Controllers = append(slices.Clone(s.Controllers), controller)
	}
	return s
}
