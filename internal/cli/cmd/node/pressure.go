package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/node/eviction"
)

// reservingFlags are the flags that reserve resources of the host.
var reservingFlags = []string{"system-reserved", "kube-reserved"}

// parsePressure reads the values of --eviction-hard, and of the flags that reserve resources.
func parsePressure(reserved map[string][]string, thresholds []string) (*node.Pressure, error) {
	p := &node.Pressure{Now: time.Now}
	for _, flag := range reservingFlags {
		list, err := eviction.ParseReserved(reserved[flag])
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		p.Reserved = append(p.Reserved, list)
	}
	var err error
	if p.Thresholds, err = eviction.ParseThresholds(thresholds); err != nil {
		return nil, fmt.Errorf("--eviction-hard: %w", err)
	}
	return p, nil
}

// resources are the host's memory, disk and processes. It implements node.Host.
type resources struct{ *reach }

// Observe implements node.Host.
func (r resources) Observe() (eviction.Observations, error) {
	o := eviction.Observations{}
	total, terr := host.MemoryTotal()
	available, aerr := host.MemoryAvailable()
	if terr == nil && aerr == nil {
		o[eviction.MemoryAvailable] = eviction.Observation{Available: available, Capacity: total}
	}
	limit, running, perr := host.Processes()
	if perr == nil {
		o[eviction.PIDAvailable] = eviction.Observation{Available: limit - running, Capacity: limit}
	}
	ceiling := delegation.FindCeiling()
	lower(o, eviction.MemoryAvailable, ceiling.AvailableMemory, ceiling.Memory)
	lower(o, eviction.PIDAvailable, ceiling.AvailableProcesses, ceiling.Processes)
	nerr := observeDisk(o, r.engine.dirs.Data, eviction.NodeFSAvailable, eviction.NodeFSInodesFree)
	ierr := observeDisk(o, r.engine.dirs.ImagesDir(), eviction.ImageFSAvailable, eviction.ImageFSInodesFree)
	return o, errors.Join(terr, aerr, perr, nerr, ierr)
}

// lower applies a limit of all pods, of which available is left, to a signal that is known.
func lower(o eviction.Observations, s eviction.Signal, available *int64, limit int64) {
	if had, known := o[s]; known && available != nil {
		o[s] = eviction.Observation{Available: min(had.Available, *available), Capacity: min(had.Capacity, limit)}
	}
}

// observeDisk adds the signals of the file system of a directory. A file system without a fixed number of inodes has no
// signal of inodes.
func observeDisk(o eviction.Observations, dir string, bytes, inodes eviction.Signal) error {
	disk, err := host.StatFS(dir)
	if err != nil {
		return err
	}
	o[bytes] = eviction.Observation{Available: int64(disk.Free), Capacity: int64(disk.Size)}
	if disk.Files > 0 {
		o[inodes] = eviction.Observation{Available: int64(disk.FreeFiles), Capacity: int64(disk.Files)}
	}
	return nil
}

// Limits of the measurement of what pods have on disk: the time for all, and how many count theirs at a time.
const (
	measureTime = 30 * time.Second
	measured    = 8
)

// Usage implements node.Host.
func (r resources) Usage(ctx context.Context, name corev1.ResourceName) map[types.UID]eviction.Usage {
	usage := map[types.UID]eviction.Usage{}
	quiet := &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard}
	// The error names pods that cannot be read: their usage is not known.
	pods, _ := (&podstats.View{Env: quiet, Dirs: r.engine.dirs, AllNamespaces: true}).Sample()
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	var mu sync.Mutex // guards usage
	var all errgroup.Group
	all.SetLimit(measured)
	for i := range pods {
		uid, ok := r.uidOf(pods[i].Pod)
		if !ok {
			continue
		}
		all.Go(func() error {
			if u, known := usageOf(ctx, &pods[i], name); known {
				mu.Lock()
				defer mu.Unlock()
				usage[types.UID(uid)] = u
			}
			return nil
		})
	}
	_ = all.Wait() // no function returns an error
	return usage
}

// usageOf returns what a pod uses of a resource.
func usageOf(ctx context.Context, pod *podstats.Usage, name corev1.ResourceName) (u eviction.Usage, known bool) {
	if name == corev1.ResourceMemory || name == eviction.PIDs {
		return sampled(pod, name)
	}
	disk, err := podclient.DiskUsage(ctx, pod.Pod)
	switch {
	case err != nil:
		return u, false
	case name == eviction.Inodes:
		return eviction.Usage{Total: disk.Inodes}, true
	}
	return eviction.Usage{Total: disk.Bytes, Containers: disk.Containers}, true
}

// sampled returns what a pod uses of memory or of processes.
func sampled(pod *podstats.Usage, name corev1.ResourceName) (u eviction.Usage, known bool) {
	total := pod.Sample.Pids
	if name == corev1.ResourceMemory {
		total, u.Containers = pod.Sample.Memory, map[string]int64{}
		for _, c := range pod.Containers {
			if c.Sample.Memory != nil {
				u.Containers[c.Name] = *c.Sample.Memory
			}
		}
	}
	if total == nil {
		return u, false
	}
	u.Total = *total
	return u, true
}

// CollectImages implements node.Host.
func (r resources) CollectImages(all bool) error {
	s, err := r.engine.env.Deps.OpenImages(r.engine.dirs)
	switch {
	case err != nil:
		return err
	case all:
		return imagegc.CollectAll(r.engine.env, r.engine.dirs, s)
	}
	return imagegc.Collect(r.engine.env, r.engine.dirs, s)
}
