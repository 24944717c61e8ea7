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

// Resize changes the limits of the running pod and of its containers, in the kubelet's order
// (doPodResizeAction in pkg/kubelet/kuberuntime): memory, then CPU; for each, increases apply to
// the pod before its containers, decreases after. So the containers never have more than the pod.
// It skips a container without a cgroup. After an error some values may be new: another call
// continues.
//
// A memory limit that is not above the current use is refused before anything is changed: the error
// is a *BelowUse.
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
		if err != nil && (w.dir == pod.dir || !errors.Is(err, fs.ErrNotExist)) { // the container may just have ended
			return fmt.Errorf("resize the pod: write %q to %s: %w", w.value, filepath.Join(w.dir, w.file), err)
		}
	}
	return nil
}

// BelowUse means that memory limits are below the current use, with the kubelet's text
// (validateMemoryResizeAction in pkg/kubelet/kuberuntime).
type BelowUse struct{ Limits []string }

func (e *BelowUse) Error() string {
	text := strings.Join(e.Limits, ", ")
	if len(e.Limits) > 1 {
		text = "[" + text + "]"
	}
	return "cannot decrease memory limits: " + text
}

// node is a cgroup with its current and its desired values, by file.
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
			delete(n.want, file) // the controller or the kernel lacks the file
		case err != nil:
			return nil, fmt.Errorf("read the values of cgroup %s: %w", n.dir, err)
		default:
			n.has[file] = strings.TrimSpace(string(b))
		}
	}
	return n, nil
}

// grows compares the current and the desired value of a file: > 0 means an increase.
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

// amount is the first number of a value; max is the largest number.
func amount(value string) int64 {
	first, _, _ := strings.Cut(value, " ")
	if n, err := strconv.ParseInt(first, 10, 64); err == nil {
		return n
	}
	return math.MaxInt64
}

// write is one value for one file.
type write struct{ dir, file, value string }

// order lists the writes in a safe order.
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
		limit   []string // the limit, and the files written with it
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
		// Requests shrink before limits, so that they never exceed them.
		set(pod, r.request)
		set(pod, r.limit...)
	}
	return list
}

// belowUse returns a *BelowUse if a memory limit that shrinks is not above the current use.
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
