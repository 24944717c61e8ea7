package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/delegation"
)

// Resize gives the pod and containers of it other limits while they run, in the
// kubelet's order (doPodResizeAction in pkg/kubelet/kuberuntime): memory, then CPU; of
// each, what grows for the pod before its containers have it, and what shrinks after.
// So the containers never have more than the pod. A container without a cgroup is
// passed over. After an error some values may be new: calling it again goes on.
//
// A limit of memory that is not above what is in use is refused before anything is
// changed: the error is a *BelowUse.
func (p *Pod) Resize(l Limits, containers map[string]Limits) error {
	pod, err := p.node("", l.pod())
	if err != nil {
		return err
	}
	var inside []*node
	for name, l := range containers {
		n, err := p.node(name, l.Values())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		inside = append(inside, n)
	}
	slices.SortFunc(inside, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	if err := belowUse(append([]*node{pod}, inside...)); err != nil {
		return err
	}
	for _, w := range order(pod, inside) {
		err := delegation.Write(w.dir, w.file, w.value)
		if err != nil && (w.dir == pod.dir || !errors.Is(err, fs.ErrNotExist)) { // a container may just have ended
			return fmt.Errorf("resize the pod: write %q to %s: %w", w.value, filepath.Join(w.dir, w.file), err)
		}
	}
	return nil
}

// BelowUse says that memory limits are below what is in use, in the kubelet's words
// (validateMemoryResizeAction in pkg/kubelet/kuberuntime).
type BelowUse struct{ Limits []string }

func (e *BelowUse) Error() string {
	text := strings.Join(e.Limits, ", ")
	if len(e.Limits) > 1 {
		text = "[" + text + "]"
	}
	return "cannot decrease memory limits: " + text
}

// node is a cgroup with the values it has and is to have, by file.
type node struct {
	name, dir string
	has, want map[string]string
}

// node reads one cgroup of the pod; "" is the pod's own.
func (p *Pod) node(name string, v Values) (*node, error) {
	n := &node{name: name, dir: filepath.Join(p.Path(), name), has: map[string]string{}}
	if _, err := os.Stat(n.dir); err != nil {
		return nil, err
	}
	n.want = v.files(delegation.Subtree(p.subtree).Has)
	for file, unset := range map[string]string{"memory.max": "max", "memory.high": "max", "memory.min": "0", "memory.low": "0"} {
		if _, ok := n.want[file]; !ok {
			n.want[file] = unset
		}
	}
	n.want["memory.swap.max"] = "max"
	if n.want["memory.max"] != "max" { // as noSwap
		n.want["memory.swap.max"] = "0"
	}
	for file := range n.want {
		b, err := os.ReadFile(filepath.Join(n.dir, file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			delete(n.want, file) // the controller is not there, or the kernel has no such file
		case err != nil:
			return nil, fmt.Errorf("read the values of cgroup %s: %w", n.dir, err)
		default:
			n.has[file] = strings.TrimSpace(string(b))
		}
	}
	return n, nil
}

// grows compares what a file has and is to have: > 0 means that there will be more.
func (n *node) grows(file string) int {
	has, want := amount(n.has[file]), amount(n.want[file])
	switch {
	case want > has:
		return 1
	case want < has:
		return -1
	}
	return 0
}

// amount is the first number of a value; max is the highest there is.
func amount(value string) int64 {
	first, _, _ := strings.Cut(value, " ")
	if n, err := strconv.ParseInt(first, 10, 64); err == nil {
		return n
	}
	return math.MaxInt64
}

// write is one value for one file.
type write struct{ dir, file, value string }

// order lists what is to be written, in the order in which it is safe.
func order(pod *node, containers []*node) []write {
	var list []write
	set := func(n *node, files ...string) {
		for _, file := range files {
			if value, ok := n.want[file]; ok && value != n.has[file] {
				list = append(list, write{n.dir, file, value})
				n.has[file] = value
			}
		}
	}
	for _, r := range []struct {
		limit   []string // the limit, and what is written with it
		request string
	}{
		{[]string{"memory.max", "memory.swap.max", "memory.min", "memory.low", "memory.high"}, ""},
		{[]string{"cpu.max"}, "cpu.weight"},
	} {
		if pod.grows(r.limit[0]) > 0 {
			set(pod, r.limit...)
		}
		if pod.grows(r.request) > 0 {
			set(pod, r.request)
		}
		for _, n := range containers {
			set(n, r.limit...)
			set(n, r.request)
		}
		// Requests shrink before limits, so that they never are above them.
		set(pod, r.request)
		set(pod, r.limit...)
	}
	return list
}

// belowUse is a *BelowUse if a memory limit that becomes smaller is not above what is
// in use.
func belowUse(nodes []*node) error {
	e := &BelowUse{}
	for _, n := range nodes {
		if n.grows("memory.max") >= 0 {
			continue
		}
		b, err := os.ReadFile(filepath.Join(n.dir, "memory.current"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the memory use of cgroup %s: %w", n.dir, err)
		}
		limit, used := amount(n.want["memory.max"]), amount(strings.TrimSpace(string(b)))
		if used < limit {
			continue
		}
		what := "pod"
		if n.name != "" {
			what = fmt.Sprintf("container %q", n.name)
		}
		e.Limits = append(e.Limits, fmt.Sprintf("attempting to set %s memory limit (%d) below current usage (%d)", what, limit, used))
	}
	if len(e.Limits) > 0 {
		return e
	}
	return nil
}
