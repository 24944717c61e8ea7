package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OOM is the limit because of which the kernel has killed processes of a container, or of the pod,
// for lack of memory.
type OOM string

const (
	NoOOM        OOM = ""          // it has not killed any
	OOMContainer OOM = "container" // the container's limit was reached
	OOMPod       OOM = "pod"       // the pod's limit was reached
	OOMOutside   OOM = "outside"   // the limit of a cgroup above the pod, or the host's memory
)

// OOM returns whether the kernel has killed processes of a container for lack of memory since its
// cgroup was made, and because of which limit.
func (p *Pod) OOM(container string) (OOM, error) {
	kills, err := p.OOMKills(container)
	if err != nil || kills == 0 {
		return NoOOM, err
	}
	// "oom" counts how often the limit of this very cgroup was reached and nothing could be
	// reclaimed.
	for _, place := range []struct {
		of   OOM
		file string
	}{{OOMContainer, filepath.Join(container, "memory.events.local")}, {OOMPod, "memory.events.local"}} {
		b, err := os.ReadFile(filepath.Join(p.Path(), place.file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel before 5.2
		}
		if err != nil {
			return NoOOM, fmt.Errorf("look for the reason of an OOM kill: %w", err)
		}
		if n, err := keyed(string(b), "oom"); err == nil && n > 0 {
			return place.of, nil
		}
	}
	return OOMOutside, nil
}

// OOMKills counts the processes of a container that the kernel has killed for lack of memory,
// whether the container's limit was reached or the pod's. An empty name means the whole pod. A
// container without a cgroup has none.
func (p *Pod) OOMKills(container string) (uint64, error) {
	b, err := os.ReadFile(filepath.Join(p.Path(), container, "memory.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count OOM kills: %w", err)
	}
	return keyed(string(b), "oom_kill")
}

// keyed returns a number from a "key value" file; a key that an older kernel lacks counts 0.
func keyed(text, key string) (uint64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+" "); ok {
			return strconv.ParseUint(value, 10, 64)
		}
	}
	return 0, nil
}

// KillContainer sends SIGKILL to every process of a container, and does not wait.
func (p *Pod) KillContainer(name string) error { return kill(filepath.Join(p.Path(), name)) }

// Kill sends SIGKILL to every process of the pod, and does not wait.
func (p *Pod) Kill() error { return kill(p.Path()) }

// Remove kills what is left of the pod and removes its cgroups.
func (p *Pod) Remove() error { return Remove(p.Path()) }
