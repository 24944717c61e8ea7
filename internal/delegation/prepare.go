package delegation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (s Subtree) prepare(v hostView) error {
	movable, foreign, err := v.procs(s.Path)
	switch {
	case err != nil:
		return err
	case v.isRoot(s.Path):
	case foreign > 0:
		return occupied(s.Path, foreign)
	case len(movable) > 0:
		if err := toLeaf(filepath.Join(v.root, s.Path), movable); err != nil {
			return err
		}
	}
	return s.enable(v)
}

// toLeaf moves processes to the leaf of a cgroup. Another command may remove the leaf while it is
// empty: then toLeaf makes it again.
func toLeaf(dir string, pids []int) error {
	leaf := filepath.Join(dir, Leaf)
	for attempt := 0; ; attempt++ {
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the supervisor's cgroup: %w", err)
		}
		err := moveAll(leaf, pids)
		if attempt == 10 || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
}

func moveAll(dir string, pids []int) error {
	for _, pid := range pids {
		if err := move(dir, pid); err != nil {
			return err
		}
	}
	return nil
}

// RemoveLeaf removes the leaf of a subtree if it has no processes.
func RemoveLeaf(subtree string) error {
	err := os.Remove(filepath.Join(subtree, Leaf))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove the supervisor's cgroup: %w", err)
}

// move moves one process into a cgroup. A process that is gone is no error.
func move(dir string, pid int) error {
	err := Write(dir, "cgroup.procs", strconv.Itoa(pid))
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("move process %d into its cgroup: %w", pid, err)
	}
	return nil
}

// enable enables the controllers for the subtree's children, beginning at the highest ancestor that
// needs it. The service manager cannot disable one while a child of ours uses it (EBUSY).
func (s Subtree) enable(v hostView) error {
	for _, c := range s.Controllers {
		chain := []string{s.Path}
		for !v.has(chain[0], c) {
			chain = slices.Insert(chain, 0, filepath.Dir(chain[0]))
		}
		for _, dir := range chain {
			if err := Write(v.root+dir, "cgroup.subtree_control", "+"+c); err != nil {
				return fmt.Errorf("enable the %s controller below cgroup %s: %w", c, dir, err)
			}
		}
	}
	return nil
}

// has reports whether the cgroup dir itself has a controller; Mount has all.
func (v hostView) has(dir, controller string) bool {
	b, err := os.ReadFile(v.root + dir + "/cgroup.controllers")
	return dir == Mount || err == nil && slices.Contains(strings.Fields(string(b)), controller)
}

// Write writes a cgroup file in one piece. It never creates one: a missing file means that the
// kernel or the parent does not offer it (fs.ErrNotExist).
func Write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
