package runner

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/volumes"
)

// measureStorage compares the pod's disk usage with its Plan's limits.
func (e *engine) measureStorage() {
	defer e.addBusy(-1)
	began := clock.Now()
	m := diskMeter{store: e.pod, rootfs: e.rootfsNames()}
	over, err := m.exceeded(e.currentPlan())
	if err != nil {
		e.warn("the pod's disk usage cannot be compared with its limits: " + err.Error())
	}
	now := clock.Now()
	e.emit(lifecycle.Event{At: now, Kind: lifecycle.StorageMeasured, Message: over, Bytes: m.sum.Bytes, Took: now.Boot - began.Boot})
}

// diskUsage counts what the pod uses of the disk.
func (e *engine) diskUsage() (*wire.DiskUsageResult, error) {
	m, plan := diskMeter{store: e.pod, rootfs: e.rootfsNames(), counted: map[string]int64{}}, e.currentPlan()
	if _, err := m.used(plan, pod.Limit{Kind: pod.PodLimit}); err != nil {
		return nil, err
	}
	result := &wire.DiskUsageResult{Containers: map[string]int64{}}
	for _, list := range plan.All() {
		for _, c := range list {
			n, err := m.container(c.Name)
			if err != nil {
				return nil, err
			}
			result.Containers[c.Name] = n
		}
	}
	result.Bytes, result.Inodes = m.sum.Bytes, m.sum.Inodes // with the ephemeral containers
	return result, nil
}

// rootfsNames returns the names of the existing root file systems in RootfsDir, by container.
func (e *engine) rootfsNames() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[string]string{}
	for name, r := range e.instances {
		if r.container != nil {
			found[name] = r.container.ID()
		}
	}
	return found
}

// diskMeter measures the disk usage of the parts of a pod, each part once.
type diskMeter struct {
	store   store.Pod
	rootfs  map[string]string // by container: the name of its root file system in RootfsDir
	counted map[string]int64  // by directory
	sum     volumes.Count     // of all counted directories
}

// exceeded returns the message of the first exceeded limit of the Plan, or "".
func (m *diskMeter) exceeded(plan *pod.Plan) (message string, err error) {
	m.counted = map[string]int64{}
	for _, l := range plan.Storage {
		n, err := m.used(plan, l)
		switch {
		case errors.Is(err, volumes.ErrTooDeep):
			// A directory that cannot be counted (too large or too deep) counts as over the limit.
			return l.Message, nil
		case err != nil:
			return "", err
		case n > l.Bytes:
			return l.Message, nil
		}
	}
	return "", nil
}

// used returns the disk usage to which a limit applies.
func (m *diskMeter) used(plan *pod.Plan, l pod.Limit) (sum int64, err error) {
	add := func(n int64, e error) {
		sum += n
		err = errors.Join(err, e)
	}
	switch l.Kind {
	case pod.VolumeLimit:
		add(m.volume(l.Name))
	case pod.ContainerLimit:
		add(m.container(l.Name))
	case pod.PodLimit:
		for _, v := range plan.Volumes {
			if v.Kind == pod.EmptyDir {
				add(m.volume(v.Name))
			}
		}
		for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
			for i := range list {
				add(m.container(list[i].Name))
			}
		}
	default:
		return 0, fmt.Errorf("unknown limit %q", l.Kind)
	}
	return sum, err
}

func (m *diskMeter) volume(name string) (int64, error) {
	return m.count(filepath.Join(m.store.VolumesDir(), name), volumes.Usage)
}

// container returns the disk usage of a container's logs and its writable layer.
func (m *diskMeter) container(name string) (int64, error) {
	n, err := m.count(m.store.LogDir(name), volumes.Usage)
	if id, ok := m.rootfs[name]; ok && err == nil {
		var written int64
		written, err = m.count(filepath.Join(m.store.RootfsDir(), id), volumes.UsageOfRootfs)
		n += written
	}
	return n, err
}

// count returns the bytes in a directory.
func (m *diskMeter) count(dir string, how func(string) (volumes.Count, error)) (int64, error) {
	if n, ok := m.counted[dir]; ok {
		return n, nil
	}
	n, err := how(dir)
	if err == nil {
		m.counted[dir] = n.Bytes
		m.sum.Add(n)
	}
	return n.Bytes, err
}
