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

// Subtree is the cgroup below which pods are made.
type Subtree struct {
	Path        string   // /sys/fs/cgroup/…
	Controllers []string // of cpu, io, memory, pids: those a pod can have
}

// NotDelegated says in one sentence why limits cannot be enforced; its cure is
// the hint that internal/report finds.
type NotDelegated = delegation.NotDelegated

// Delegated finds the subtree this process may manage; it changes nothing. The
// processes named by with count as ours, as the calling one does. The error is a
// *NotDelegated unless /proc could not be read.
func Delegated(with ...int) (Subtree, error) {
	s, err := delegation.Find(with...)
	return Subtree(s), err
}

// Lacks returns a *NotDelegated if l asks for what the subtree's controllers
// cannot enforce; the rest of l is enforced all the same.
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

// with is s with the controllers that l needs and others do not.
func (s Subtree) with(l Limits) Subtree {
	if len(l.HugePages) == 0 {
		return s
	}
	return Subtree(delegation.Subtree(s).With("hugetlb"))
}

// CreatePod makes the pod's cgroup with its limits. The calling process and those
// named by pids (as its own pid namespace numbers them) are moved to the leaf if
// they are in the way. What l asks for and Lacks reports is left out.
//
// Empty cgroups of that name, left over, are replaced; one with processes is an
// error, and so is a name that is no plain file name.
func (s Subtree) CreatePod(name string, l Limits, pids []int) (*Pod, error) {
	if name == "" || name[0] == '.' || strings.Contains(name, "/") || name == delegation.Leaf {
		return nil, fmt.Errorf("make the pod's cgroup: %q is no name for it", name)
	}
	s = s.with(l)
	if err := delegation.Subtree(s).Open(pids...); err != nil {
		return nil, err
	}
	p := &Pod{subtree: s, name: name}
	if err := clear(p.Path()); err != nil {
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

// maxDescendants keeps a container that can write to its own cgroup from filling
// the kernel with empty ones.
const maxDescendants = 1024

// pod is Values with what holds for a pod only.
func (l Limits) pod() Values {
	v := l.Values()
	if v.PidsMax == 0 {
		v.PidsMax = DefaultPids
	}
	return v
}

// resources are v in the library's form, of the controllers that s has. Every
// file is written, so that an update can take a limit away.
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

// noSwap keeps a pod with a memory limit out of swap, as the kubelet does by
// default: otherwise the limit would only begin to bite when swap is full.
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

// Path is the pod's cgroup, /sys/fs/cgroup/…; Remove takes it.
func (p *Pod) Path() string { return filepath.Join(p.subtree.Path, p.name) }

// ContainerPath is what libcontainer's Config.Cgroups.Path needs for a child of
// the pod: absolute, relative to the cgroup mount.
func (p *Pod) ContainerPath(name string) string {
	return strings.TrimPrefix(filepath.Join(p.Path(), name), delegation.Mount)
}
