package podmetrics

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/store"
)

// Summary is the kubelet's /stats/summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1), with what podrun knows of it.
type Summary struct {
	Node NodeStats  `json:"node"`
	Pods []PodStats `json:"pods"`
}

// NodeStats is the usage of the machine.
type NodeStats struct {
	NodeName  string      `json:"nodeName"`
	StartTime time.Time   `json:"startTime"`
	CPU       CPUStats    `json:"cpu"`
	Memory    MemoryStats `json:"memory"`
	FS        FSStats     `json:"fs"`
}

// PodStats is the usage of a pod.
type PodStats struct {
	PodRef     PodReference     `json:"podRef"`
	StartTime  time.Time        `json:"startTime"`
	Containers []ContainerStats `json:"containers"`
	CPU        CPUStats         `json:"cpu"`
	Memory     MemoryStats      `json:"memory"`
	Network    *NetworkStats    `json:"network,omitempty"`
}

// PodReference names a pod.
type PodReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// ContainerStats is the usage of a container.
type ContainerStats struct {
	Name      string      `json:"name"`
	StartTime time.Time   `json:"startTime"`
	CPU       CPUStats    `json:"cpu"`
	Memory    MemoryStats `json:"memory"`
}

// CPUStats is used processor time, in nanoseconds.
type CPUStats struct {
	Time                 time.Time `json:"time"`
	UsageCoreNanoSeconds *int64    `json:"usageCoreNanoSeconds,omitempty"`
}

// MemoryStats is used memory, in bytes.
type MemoryStats struct {
	Time            time.Time `json:"time"`
	AvailableBytes  *int64    `json:"availableBytes,omitempty"`
	UsageBytes      *int64    `json:"usageBytes,omitempty"`
	WorkingSetBytes *int64    `json:"workingSetBytes,omitempty"`
	RSSBytes        *int64    `json:"rssBytes,omitempty"`
}

// FSStats is the file system of podrun's data.
type FSStats struct {
	Time           time.Time `json:"time"`
	AvailableBytes int64     `json:"availableBytes"`
	CapacityBytes  int64     `json:"capacityBytes"`
	UsedBytes      int64     `json:"usedBytes"`
	InodesFree     int64     `json:"inodesFree"`
	Inodes         int64     `json:"inodes"`
	InodesUsed     int64     `json:"inodesUsed"`
}

// NetworkStats is the traffic of a pod: of its first interface, and of each.
type NetworkStats struct {
	Time time.Time `json:"time"`
	InterfaceStats
	Interfaces []InterfaceStats `json:"interfaces"`
}

// InterfaceStats is the traffic of an interface.
type InterfaceStats struct {
	Name     string `json:"name"`
	RxBytes  int64  `json:"rxBytes"`
	RxErrors int64  `json:"rxErrors"`
	TxBytes  int64  `json:"txBytes"`
	TxErrors int64  `json:"txErrors"`
}

// Summary returns the usage of the node and of the pods whose UID uidOf returns. The error joins what cannot be read;
// the rest is returned too.
func (c *Collector) Summary(nodeName string, uidOf func(store.Pod) (uid string, ok bool)) (*Summary, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Summary{Pods: []PodStats{}}
	var err error
	if s.Node, err = readNodeStats(nodeName, c.Dirs.Data); err != nil {
		return nil, err
	}
	pods, err := (&podstats.View{Env: quietEnv(), Dirs: c.Dirs, AllNamespaces: true}).Sample()
	for i := range pods {
		if uid, ok := uidOf(pods[i].Pod); ok {
			s.Pods = append(s.Pods, podStatsOf(&pods[i], uid))
		}
	}
	return s, err
}

func podStatsOf(u *podstats.Usage, uid string) PodStats {
	p := PodStats{PodRef: PodReference{u.Pod.Name, u.Pod.Namespace, uid}, Containers: []ContainerStats{}, CPU: cpuStats(u), Memory: memoryStats(u)}
	for i := range u.Containers {
		c := &u.Containers[i]
		started := c.Status.State.Running.StartedAt
		p.Containers = append(p.Containers, ContainerStats{Name: c.Name, StartTime: started, CPU: cpuStats(c), Memory: memoryStats(c)})
		if p.StartTime.IsZero() || started.Before(p.StartTime) {
			p.StartTime = started
		}
	}
	var all []InterfaceStats
	for _, i := range u.Network() {
		all = append(all, InterfaceStats{i.Name, i.Receive.Bytes, i.Receive.Errors, i.Transmit.Bytes, i.Transmit.Errors})
	}
	if len(all) > 0 {
		p.Network = &NetworkStats{u.Sample.At.UTC(), all[0], all}
	}
	return p
}

func cpuStats(u *podstats.Usage) CPUStats {
	c := CPUStats{Time: u.Sample.At.UTC()}
	if u.CPUTotal != nil {
		c.UsageCoreNanoSeconds = new(u.CPUTotal.Nanoseconds())
	}
	return c
}

func memoryStats(u *podstats.Usage) MemoryStats {
	return MemoryStats{Time: u.Sample.At.UTC(), UsageBytes: u.Sample.Charged, WorkingSetBytes: u.Sample.Memory, RSSBytes: u.Sample.RSS}
}

// readNodeStats reads the usage of the machine, and of the file system with the directory data.
func readNodeStats(name, data string) (n NodeStats, err error) {
	now := time.Now().UTC()
	use, err := readNode()
	disk, diskErr := host.StatFS(data)
	var info unix.Sysinfo_t
	sysErr := unix.Sysinfo(&info)
	if err := errors.Join(err, diskErr, sysErr); err != nil {
		return n, fmt.Errorf("read the usage of the machine: %w", err)
	}
	return NodeStats{
		NodeName: name, StartTime: now.Add(-time.Duration(info.Uptime) * time.Second).Truncate(time.Second),
		CPU:    CPUStats{now, new(use.cpu.Nanoseconds())},
		Memory: MemoryStats{Time: now, AvailableBytes: &use.available, UsageBytes: &use.memory, WorkingSetBytes: &use.memory, RSSBytes: &use.rss},
		FS: FSStats{
			now, int64(disk.Free), int64(disk.Size), int64(disk.Size - disk.Free),
			int64(disk.FreeFiles), int64(disk.Files), int64(disk.Files - disk.FreeFiles),
		},
	}, nil
}
