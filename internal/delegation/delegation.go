// Package delegation finds the cgroup v2 subtree that the calling process may manage, and prepares
// it for child cgroups.
//
// It only reads and writes cgroup files, so it is cheap to link. The CLI moves itself to the leaf
// before it starts the pod init, because only a process that sees the CLI's pid can move it. The
// supervisor later finds the same subtree.
package delegation

import (
	"slices"

	"github.com/podrun/podrun/internal/report"
)

// Mount is where cgroup v2 must be mounted; libcontainer supports no other path.
const Mount = "/sys/fs/cgroup"

// Leaf is the child cgroup for podrun's own processes, because a cgroup with processes cannot have
// children with controllers.
const Leaf = "supervisor"

// wanted returns the controllers that podrun uses, ordered by name. Three of them enforce limits;
// io only counts.
func wanted() []string { return []string{"cpu", "io", "memory", "pids"} }

// Subtree is a cgroup in which this process may make, limit and remove children.
type Subtree struct {
	Path        string   // below Mount
	Controllers []string // of cpu, io, memory, pids: those that its children can have
}

// Has reports whether children of s can have a controller.
func (s Subtree) Has(controller string) bool { return slices.Contains(s.Controllers, controller) }

// NotDelegated is the error for a missing subtree or controller, in one sentence that fits after
// "limits are not enforced: ".
type NotDelegated struct{ Why, Hint string }

func (e *NotDelegated) Error() string { return e.Why }

// Unwrap returns the error for the CLI, with its hint.
func (e *NotDelegated) Unwrap() error {
	return report.New(report.Failure, e.Hint, "%s", e.Why)
}

// Find finds the subtree without changing anything: the calling process's own cgroup if it contains
// only that process and the processes named by with, else the nearest ancestor that is ours and
// holds no process. The error is *NotDelegated unless /proc could not be read.
func Find(with ...int) (Subtree, error) { return find(host(with)) }

// FindAndPrepare is Find and Prepare.
func FindAndPrepare(with ...int) (Subtree, error) {
	s, err := Find(with...)
	if err != nil {
		return Subtree{}, err
	}
	return s, s.Prepare(with...)
}

// Prepare makes the subtree usable: it moves the calling process and those named by with to the leaf
// if they block the subtree, and enables the controllers for its children. It is idempotent. If other
// processes block the subtree, the error is a *NotDelegated.
func (s Subtree) Prepare(with ...int) error { return s.prepare(host(with)) }
