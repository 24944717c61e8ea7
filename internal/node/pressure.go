package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/eviction"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
)

// Host is what the agent reads and frees of this host under pressure.
type Host interface {
	// Observe returns the signals that can be known. The error has the reasons for the others.
	Observe() (eviction.Observations, error)
	// Usage returns what pods of this host use of a resource, by UID. A pod whose usage cannot be read is missing.
	Usage(ctx context.Context, name corev1.ResourceName) map[types.UID]eviction.Usage
	// CollectImages removes unused images if the disk is nearly full, or all of them.
	CollectImages(all bool) error
}

// Pressure is how much of the host pods may use, and which conditions of pressure it has. A nil Pressure has none.
type Pressure struct {
	Thresholds []eviction.Threshold
	Reserved   []corev1.ResourceList // of allocatable
	Now        func() time.Time

	mu    sync.Mutex
	state eviction.State
}

// The kubelet's intervals (evictionMonitoringPeriod in pkg/kubelet/kubelet.go, ImageGCPeriod), and how long it waits for the
// removal of an evicted pod's files (podCleanupTimeout in pkg/kubelet/eviction/eviction_manager.go).
const (
	pressureInterval = 10 * time.Second
	imageInterval    = 5 * time.Minute
	cleanupTimeout   = 30 * time.Second
)

// conditions returns the conditions of pressure that are True.
func (p *Pressure) conditions() []corev1.NodeConditionType {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Conditions()
}

// allocatable returns how much of a capacity pods may request, and the first resource of which too much is reserved.
func (p *Pressure) allocatable(capacity corev1.ResourceList) (corev1.ResourceList, corev1.ResourceName) {
	if p == nil {
		return capacity.DeepCopy(), ""
	}
	return eviction.Allocatable(capacity, p.Reserved, p.Thresholds)
}

// evictor evicts pods before the host has no memory, disk or processes left, as the kubelet's eviction manager does
// (pkg/kubelet/eviction/eviction_manager.go, synchronize).
type evictor struct {
	*Pressure
	agent *Agent
	host  Host

	low       corev1.ResourceName // that is being reclaimed; "" if none is low
	collected time.Time           // when images were last collected
	evicted   time.Time           // when a pod was last evicted

	images, removals, evictions, observations report.LastError
}

func newEvictor(a *Agent, h Host) *evictor {
	return &evictor{Pressure: a.Node.Pressure, agent: a, host: h}
}

// run reclaims until ctx ends.
func (e *evictor) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !e.step(ctx) {
			_ = sleep.For(ctx, pressureInterval) // the loop ends with ctx
		}
	}
}

// step collects images every five minutes, updates the conditions, and evicts at most one pod. It reports whether the next
// step is due at once.
func (e *evictor) step(ctx context.Context) bool {
	if now := e.Now(); now.Sub(e.collected) >= imageInterval {
		e.collected = now
		e.images.Print(e.agent.ErrOut, e.host.CollectImages(false))
	}
	observed, met := e.observe()
	if len(met) == 0 {
		e.low = ""
		return false
	}
	if name := met[0].Signal.Resource(); e.low != name {
		e.low = name
		e.agent.nodeEvent(ctx, "EvictionThresholdMet", fmt.Sprintf("Attempting to reclaim %s", name))
	}
	if onDisk(e.low) {
		e.removals.Print(e.agent.ErrOut, e.agent.removeEnded(ctx))
		e.images.Print(e.agent.ErrOut, e.host.CollectImages(true))
		if observed, met = e.observe(); len(met) == 0 {
			return false
		}
	}
	name := met[0].Signal.Resource()
	if onDisk(name) && e.awaitsRemoval() {
		return false
	}
	candidates := e.agent.candidates()
	usage := e.host.Usage(ctx, name)
	for i := range candidates {
		if u, known := usage[candidates[i].Pod.UID]; known {
			candidates[i].Usage = &u
		}
	}
	ranked := eviction.Rank(name, candidates)
	if len(ranked) == 0 {
		return false
	}
	c := ranked[0]
	message := eviction.Message(met, observed, c)
	report.Print(e.agent.ErrOut, fmt.Errorf("pod %s/%s is evicted: %s", c.Pod.Namespace, c.Pod.Name, message))
	err := e.agent.Engine.Evict(ctx, c.Pod.Namespace, c.Pod.Name, message)
	if e.evicted = e.Now(); err != nil {
		err = fmt.Errorf("evict pod %s/%s: %w", c.Pod.Namespace, c.Pod.Name, err)
	}
	e.evictions.Print(e.agent.ErrOut, err)
	return err == nil && !onDisk(name)
}

// onDisk reports whether pods keep a resource until they are removed.
func onDisk(name corev1.ResourceName) bool {
	return name == corev1.ResourceEphemeralStorage || name == eviction.Inodes
}

// awaitsRemoval reports whether files of an evicted pod are still on the disk. It is removed as soon as the API server has
// its last status, and counts up to 30 seconds if that fails (kubelet: pkg/kubelet/eviction/eviction_manager.go,
// waitForPodsCleanup).
func (e *evictor) awaitsRemoval() bool {
	for p, l := range e.agent.local() {
		if l.Pod.Status.Reason == eviction.Reason && (!hasEnded(&p.Status) || e.Now().Sub(e.evicted) < cleanupTimeout) {
			return true
		}
	}
	return false
}

// observe reads the signals, and updates the conditions, which are reported at once if they change.
func (e *evictor) observe() (eviction.Observations, []eviction.Threshold) {
	observed, err := e.host.Observe()
	e.observations.Print(e.agent.ErrOut, err)
	met := eviction.Met(e.Thresholds, observed)
	before := e.conditions()
	e.mu.Lock()
	e.state = e.state.Update(e.Now(), met)
	e.mu.Unlock()
	if !slices.Equal(before, e.conditions()) {
		e.agent.Node.wake()
	}
	return observed, met
}

// local returns the node's pods that are on this host, with what the API server has of them.
func (a *Agent) local() map[*corev1.Pod]*Local {
	found := map[*corev1.Pod]*Local{}
	for _, p := range a.List() {
		if l, err := a.Engine.Find(p.Namespace, p.Name); err == nil && l != nil && l.UID == p.UID { // the worker prints err
			found[p] = l
		}
	}
	return found
}

// candidates returns the pods that run.
func (a *Agent) candidates() (all []eviction.Candidate) {
	for p, l := range a.local() {
		if l.Alive && !hasEnded(&p.Status) {
			all = append(all, eviction.Candidate{Pod: p})
		}
	}
	return all
}

// removeEnded removes from this host the pods that have ended, with their logs (kubelet:
// pkg/kubelet/kuberuntime/kuberuntime_gc.go, DeleteAllUnusedContainers). The API server has their last status.
func (a *Agent) removeEnded(ctx context.Context) (err error) {
	for p, l := range a.local() {
		if !l.Alive && hasEnded(&p.Status) {
			if failed := a.Engine.Remove(ctx, p.Namespace, p.Name); failed != nil {
				err = fmt.Errorf("remove ended pod %s/%s: %w", p.Namespace, p.Name, failed)
			}
		}
	}
	return err
}

// nodeEvent sends a warning about the node. It is lost if the API server does not answer.
func (a *Agent) nodeEvent(ctx context.Context, reason, message string) {
	name := a.Node.Name
	a.warn(ctx, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}, metav1.NamespaceDefault, reason, message)
}
