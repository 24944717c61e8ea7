package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/podrun/podrun/internal/delegation"
)

// Subtree is the cgroup in which pods' cgroups are made.
type Subtree struct {
	Path        string   // /sys/fs/cgroup/…
	Controllers []string // of cpu, io, memory, pids: those available to pods
}

// NotDelegated contains the one-sentence reason why limits cannot be enforced; internal/report
// finds the hint for it.
type NotDelegated = delegation.NotDelegated

// Delegated finds the subtree that this process may manage; it changes nothing. The processes in
// ownPIDs count as podrun's own, like the calling one. The error is a *NotDelegated unless /proc could
// not be read.
func Delegated(ownPIDs ...int) (Subtree, error) {
	s, err := delegation.Find(ownPIDs...)
	return Subtree(s), err
}

// Lacks returns a *NotDelegated if l contains limits that the subtree's controllers cannot enforce;
// the rest of l is enforced all the same.
func (s Subtree) Lacks(l Limits) error {
	var need []string
	if l.CPULimit > 0 || l.CPURequest > 0 {
		need = append(need, "cpu")
	}
	if l.MemoryLimit > 0 || l.MemoryMin > 0 || l.MemoryLow > 0 || l.MemoryHigh > 0 {
		need = append(need, "memory")
	}
	if l.Pids > 0 {
		need = append(need, "pids")
	}
	if len(l.HugePages) > 0 {
		need = append(need, "hugetlb")
		s = s.with(l)
	}
	return delegation.Subtree(s).Lacks(need...)
}

// with returns s with the controllers that l needs beyond the usual ones.
func (s Subtree) with(l Limits) Subtree {
	if len(l.HugePages) == 0 {
		return s
	}
	return Subtree(delegation.Subtree(s).With("hugetlb"))
}

// CreatePod makes the pod's cgroup with its limits. It moves the calling process and those in pids
// (as its own pid namespace numbers them) to the leaf if they are in the way. It skips the limits
// that Lacks reports.
//
// It replaces an empty cgroup of that name; one with processes is an error, and so is a name that
// is not a plain file name.
func (s Subtree) CreatePod(name string, l Limits, pids []int) (*Pod, error) {
	if name == "" || name[0] == '.' || strings.Contains(name, "/") || name == delegation.Leaf {
		return nil, fmt.Errorf("make the pod's cgroup: %q is not a valid name for it", name)
	}
	s = s.with(l)
	if err := delegation.Subtree(s).Prepare(pids...); err != nil {
		return nil, err
	}
	p := &Pod{subtree: s, name: name}
	if err := removeLeftovers(p.Path()); err != nil {
		return nil, err
	}
	if err := p.create(l); err != nil {
		return nil, errors.Join(fmt.Errorf("make the pod's cgroup: %w", err), p.Remove())
	}
	return p, nil
}

// Pod is the cgroup of one pod.
type Pod struct {
	subtree Subtree
	name    string
	manager *cgroup2.Manager
}

func (p *Pod) create(l Limits) error {
	values := l.pod()
	m, err := cgroup2.NewManager(p.subtree.Path, "/"+p.name, values.resources(p.subtree))
	if err != nil {
		return err
	}
	p.manager = m
	for _, c := range p.subtree.Controllers {
		if err := delegation.Write(p.Path(), "cgroup.subtree_control", "+"+c); err != nil {
			return err
		}
	}
	if err := p.noSwap(values); err != nil {
		return err
	}
	return delegation.Write(p.Path(), "cgroup.max.descendants", strconv.Itoa(maxDescendants))
}

// maxDescendants keeps a container that can write to its own cgroup from filling the kernel with
// empty ones.
const maxDescendants = 1024

// pod returns Values with the values that apply to pods only.
func (l Limits) pod() Values {
	v := l.Values()
	if v.PidsMax == 0 {
		v.PidsMax = DefaultPids
	}
	return v
}

// resources converts v to the library's form, for the controllers of s. It sets every file, so that
// an update can remove a limit.
func (v Values) resources(s Subtree) *cgroup2.Resources {
	r := &cgroup2.Resources{}
	d := delegation.Subtree(s)
	if d.Has("cpu") {
		r.CPU = &cgroup2.CPU{Weight: &v.CPUWeight, Max: cgroup2.NewCPUMax(nil, &v.CPUPeriod)}
		if v.CPUQuota > 0 {
			r.CPU.Max = cgroup2.NewCPUMax(&v.CPUQuota, &v.CPUPeriod)
		}
	}
	if d.Has("memory") {
		r.Memory = &cgroup2.Memory{Min: &v.MemoryMin, Low: &v.MemoryLow, Max: &v.MemoryMax}
		if v.MemoryHigh > 0 {
			r.Memory.High = &v.MemoryHigh
		}
		if v.MemoryMax == 0 {
			r.Memory.Max = nil
		}
	}
	if d.Has("hugetlb") {
		huge := cgroup2.HugeTlb{}
		for size, limit := range v.HugePages {
			huge = append(huge, cgroup2.HugeTlbEntry{HugePageSize: size, Limit: uint64(limit)})
		}
		r.HugeTlb = &huge
	}
	if d.Has("pids") {
		r.Pids = &cgroup2.Pids{Max: v.PidsMax}
	}
	return r
}

// noSwap disables swap for a pod with a memory limit, as the kubelet does by default: otherwise the
// limit would take effect only when swap is full.
func (p *Pod) noSwap(v Values) error {
	if !delegation.Subtree(p.subtree).Has("memory") {
		return nil
	}
	swap := "max"
	if v.MemoryMax > 0 {
		swap = "0"
	}
	err := delegation.Write(p.Path(), "memory.swap.max", swap)
	if errors.Is(err, fs.ErrNotExist) { // a kernel without swap accounting
		return nil
	}
	return err
}

// Path returns the pod's cgroup, /sys/fs/cgroup/…, the argument of Remove.
func (p *Pod) Path() string { return filepath.Join(p.subtree.Path, p.name) }

// ContainerPath returns libcontainer's Config.Cgroups.Path for a child of the pod: absolute,
// relative to the cgroup mount.
func (p *Pod) ContainerPath(name string) string {
	return strings.TrimPrefix(filepath.Join(p.Path(), name), delegation.Mount)
}
