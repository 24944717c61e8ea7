package node

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Counts is what an agent has counted since it started, as the kubelet counts it.
type Counts struct {
	Starts       Histogram           // from the first look at a pod until it is Running
	Terminations map[Termination]int // of containers
}

// Termination is the end of a container.
type Termination struct {
	ContainerType string // container, init_container or ephemeral_container
	ExitCode      int32
	Reason        string
}

// Histogram counts durations. The zero Histogram is empty.
type Histogram struct {
	Buckets []int // the durations up to each of StartBounds, and longer than those before it
	Count   int
	Sum     time.Duration
}

// StartBounds are the kubelet's bounds of the duration of a start, in seconds (pkg/kubelet/metrics,
// podStartupDurationBuckets).
var StartBounds = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}

func (h *Histogram) add(d time.Duration) {
	if h.Buckets == nil {
		h.Buckets = make([]int, len(StartBounds))
	}
	if i := slices.IndexFunc(StartBounds, func(bound float64) bool { return d.Seconds() <= bound }); i >= 0 {
		h.Buckets[i]++
	}
	h.Count++
	h.Sum += d
}

// counter counts for all workers of an agent.
type counter struct {
	mu     sync.Mutex
	counts Counts
}

// Counts returns what the agent has counted.
func (a *Agent) Counts() Counts {
	a.counter.mu.Lock()
	defer a.counter.mu.Unlock()
	c := a.counter.counts
	c.Starts.Buckets, c.Terminations = slices.Clone(c.Starts.Buckets), maps.Clone(c.Terminations)
	return c
}

// count counts what differs between two states of a pod that the agent has known for some time (kubelet:
// pkg/kubelet/kubelet.go SyncPod, pkg/kubelet/status/status_manager.go).
func (c *counter) count(known time.Duration, was, is *corev1.PodStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (was.Phase == "" || was.Phase == corev1.PodPending) && is.Phase == corev1.PodRunning {
		c.counts.Starts.add(known)
	}
	c.countEnds("init_container", was.InitContainerStatuses, is.InitContainerStatuses)
	c.countEnds("container", was.ContainerStatuses, is.ContainerStatuses)
	c.countEnds("ephemeral_container", was.EphemeralContainerStatuses, is.EphemeralContainerStatuses)
}

func (c *counter) countEnds(containerType string, was, is []corev1.ContainerStatus) {
	for _, s := range is {
		had := slices.ContainsFunc(was, func(old corev1.ContainerStatus) bool { return old.Name == s.Name && old.State.Terminated != nil })
		if end := s.State.Terminated; end != nil && !had {
			if c.counts.Terminations == nil {
				c.counts.Terminations = map[Termination]int{}
			}
			c.counts.Terminations[Termination{containerType, end.ExitCode, end.Reason}]++
		}
	}
}
