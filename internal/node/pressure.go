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

// Pressure evicts pods before the host has no memory, disk or processes left, as the kubelet's eviction manager does
// (pkg/kubelet/eviction/eviction_manager.go, synchronize). A nil Pressure does nothing.
type Pressure struct {
	Host       Host
	Thresholds []eviction.Threshold
	Reserved   []corev1.ResourceList // of allocatable
	Now        func() time.Time

	mu    sync.Mutex
	state eviction.State

	looking sync.Mutex          // guards the following
	low     corev1.ResourceName // that is being reclaimed; "" if none is low
	printed map[string]bool     // errors
}

// The kubelet's intervals (evictionMonitoringPeriod in pkg/kubelet/kubelet.go, ImageGCPeriod).
const (
	pressureInterval = 10 * time.Second
	imageInterval    = 5 * time.Minute
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

// run reclaims until ctx ends.
func (p *Pressure) run(ctx context.Context, a *Agent) {
	collected := time.Now()
	for ctx.Err() == nil {
		if time.Since(collected) >= imageInterval {
			p.collectImages(a)
			collected = time.Now()
		}
		if !p.look(ctx, a) {
			_ = sleep.For(ctx, pressureInterval) // the loop ends with ctx
		}
	}
}

// collectImages removes unused images if the disk is nearly full.
func (p *Pressure) collectImages(a *Agent) {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.print(a, p.Host.CollectImages(false))
}

// look updates the conditions, and evicts at most one pod. It reports whether it has.
func (p *Pressure) look(ctx context.Context, a *Agent) bool {
	p.looking.Lock()
	defer p.looking.Unlock()
	observed, met := p.observe(a)
	if len(met) == 0 {
		p.low = ""
		return false
	}
	if name := met[0].Signal.Resource(); p.low != name {
		p.low = name
		a.nodeEvent(ctx, "EvictionThresholdMet", fmt.Sprintf("Attempting to reclaim %s", name))
	}
	if p.low == corev1.ResourceEphemeralStorage || p.low == eviction.Inodes {
		p.print(a, a.removeEnded(ctx))
		p.print(a, p.Host.CollectImages(true))
		if observed, met = p.observe(a); len(met) == 0 {
			return false
		}
	}
	name := met[0].Signal.Resource()
	candidates := a.candidates()
	usage := p.Host.Usage(ctx, name)
	for i := range candidates {
		if u, known := usage[candidates[i].Pod.UID]; known {
			candidates[i].Usage = &u
		}
	}
	for _, c := range eviction.Rank(name, candidates) {
		message := eviction.Message(met, observed, c)
		report.Print(a.ErrOut, fmt.Errorf("pod %s/%s is evicted: %s", c.Pod.Namespace, c.Pod.Name, message))
		if err := a.Engine.Evict(ctx, c.Pod.Namespace, c.Pod.Name, message); err != nil {
			p.print(a, fmt.Errorf("evict pod %s/%s: %w", c.Pod.Namespace, c.Pod.Name, err))
			continue
		}
		return true
	}
	return false
}

// observe reads the signals, and updates the conditions, which are reported at once if they change.
func (p *Pressure) observe(a *Agent) (eviction.Observations, []eviction.Threshold) {
	observed, err := p.Host.Observe()
	p.print(a, err)
	met := eviction.Met(p.Thresholds, observed)
	before := p.conditions()
	p.mu.Lock()
	p.state = p.state.Update(p.Now(), met)
	p.mu.Unlock()
	if !slices.Equal(before, p.conditions()) {
		a.Node.wake()
	}
	return observed, met
}

// print prints an error once. The caller holds looking.
func (p *Pressure) print(a *Agent, err error) {
	if err == nil || p.printed[err.Error()] {
		return
	}
	if p.printed == nil {
		p.printed = map[string]bool{}
	}
	p.printed[err.Error()] = true
	report.Print(a.ErrOut, err)
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
