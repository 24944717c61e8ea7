// Package delegation finds the cgroup v2 subtree that the calling process may
// manage, and makes room in it.
//
// It only reads and writes cgroup files, so every program can afford it: the
// front joins the leaf before it starts the keeper, for only a process that sees
// the front's pid can move it; the supervisor later finds the same subtree.
package delegation

import (
	"slices"

	"github.com/podrun/podrun/internal/report"
)

// Mount is where cgroup v2 has to be mounted; libcontainer knows no other place.
const Mount = "/sys/fs/cgroup"

// Leaf is the child cgroup that takes podrun's own processes, because a cgroup
// with processes cannot have children with controllers.
const Leaf = "supervisor"

// wanted are the controllers podrun has a use for, in the order of their names: limits
// are kept by three of them, and io, which keeps none, counts.
func wanted() []string { return []string{"cpu", "io", "memory", "pids"} }

// Subtree is a cgroup whose children may be made, limited and removed by us.
type Subtree struct {
	Path        string   // below Mount
	Controllers []string // of cpu, io, memory, pids: those its children can have
}

// Has says whether children of s can have a controller.
func (s Subtree) Has(controller string) bool { return slices.Contains(s.Controllers, controller) }

// NotDelegated says why there is no subtree (or why it lacks a controller), in
// one sentence that fits behind "limits are not enforced: ".
type NotDelegated struct{ Why, Cure string }

func (e *NotDelegated) Error() string { return e.Why }

// Unwrap gives the form in which the command line speaks, with the cure as hint.
func (e *NotDelegated) Unwrap() error {
	return report.New(report.Failure, e.Cure, "%s", e.Why)
}

// Find looks for the subtree without changing anything: the calling process's
// own cgroup if only it and the processes named by with live there, else the
// nearest ancestor that is ours and holds no process. The error is *NotDelegated
// unless /proc could not be read.
func Find(with ...int) (Subtree, error) { return find(host(with)) }

// FindAndOpen is Find and Open.
func FindAndOpen(with ...int) (Subtree, error) {
	s, err := Find(with...)
	if err != nil {
		return Subtree{}, err
	}
	return s, s.Open(with...)
}

// Open makes room in the subtree: the calling process and those named by with go
// to the leaf if they stand in the subtree's way, and the controllers are handed
// down to its children. Opening it again changes nothing. Other processes in the
// way are a *NotDelegated.
func (s Subtree) Open(with ...int) error { return s.open(host(with)) }
