// Package node makes this host a node of a Kubernetes cluster. It does towards the API server what the kubelet
// does: it registers the node, runs the pods that are bound to it, and reports their status. An Engine runs the
// pods.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/manifest/resources"
	manifestvalidation "github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/node/eviction"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// Engine runs pods on this host. Its methods may be called concurrently.
type Engine interface {
	// Find returns the pod of a namespace and a name on this host; nil if there is none.
	Find(namespace, name string) (*Local, error)
	// Apply starts a pod with the UID of the API server, or changes the running one to its manifest. The error is
	// RefusedContainers if all has changed but these.
	Apply(ctx context.Context, uid types.UID, manifest *corev1.Pod) error
	// SetCondition sets a condition of a running pod that a component of the cluster, not the node, has set.
	SetCondition(ctx context.Context, namespace, name string, c *corev1.PodCondition) error
	// Stop ends a pod's processes, and waits for their end. A later call may shorten the grace period, in seconds.
	Stop(ctx context.Context, namespace, name string, grace int64) error
	// Evict ends a pod's processes as Stop does, with a short grace period. The pod has failed then, with the message.
	Evict(ctx context.Context, namespace, name, message string) error
	// Remove removes a pod that has ended.
	Remove(ctx context.Context, namespace, name string) error
	Events(namespace, name string) ([]corev1.Event, error)
	// PutConfigMap and PutSecret store objects of the cluster for the pods that refer to them, and notify these pods.
	// The user's objects may have the same names.
	PutConfigMap(ctx context.Context, o *corev1.ConfigMap) error
	PutSecret(ctx context.Context, o *corev1.Secret) error
	// PutClaim stores a claim with the volume to which it is bound.
	PutClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error
	// MakeVolume makes the directory of a volume, unless it is there. Each user of the pods may write into it.
	MakeVolume(name string) (dir string, err error)
	// RemoveVolume removes dir, if it is there; it must be the directory of the volume.
	RemoveVolume(name, dir string) error
	// PutServices replaces the Services of the cluster on this host with the list all.
	PutServices(ctx context.Context, all []Service) error
	// DeleteObject removes an object of the cluster, if it is there; with a claim its volume.
	DeleteObject(ctx context.Context, r Reference) error
	// Watch calls changed when the status of a pod may have changed, until ctx ends.
	Watch(ctx context.Context, changed func(namespace, name string)) error
}

// RefusedContainers are the ephemeral containers that the engine refuses, by name, with the reasons.
type RefusedContainers map[string]error

func (r RefusedContainers) Error() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		lines = append(lines, fmt.Sprintf("ephemeral container %s: %v", name, r[name]))
	}
	return strings.Join(lines, "\n")
}

// Agent is the node agent.
type Agent struct {
	Client  *kubeapi.Client
	Engine  Engine
	Node    *Registration
	Records Records
	Sysctls manifestvalidation.UnsafeSysctls // that pods may set
	LogDir  string                           // that pods see as the host's /var/log
	Host    Host                             // nil: pods are not evicted

	LoadBalancer bool // Services of type LoadBalancer get the node's address

	ErrOut   io.Writer
	Routes   func() ([]netip.Prefix, error) // the destinations of the host's routes; nil: there are none
	objects  *objectWatcher
	services *serviceWatcher
	mu       sync.Mutex
	workers  map[types.UID]*worker
	offline  string        // why the API server cannot be reached; "": it can
	mayStart chan struct{} // closed when the recorded pods may start
	once     sync.Once
	running  sync.WaitGroup
	counter  counter
}

// Run registers the node and runs its pods until ctx ends. The pods keep running then.
func (a *Agent) Run(ctx context.Context) error {
	a.workers, a.mayStart = map[types.UID]*worker{}, make(chan struct{})
	a.Node.wakeup, a.Node.known = make(chan struct{}, 1), make(chan struct{})
	recorded, err := a.Records.Load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer a.running.Wait()
	defer cancel()
	a.objects, a.services = newObjectWatcher(ctx, a), newServiceWatcher(a)
	a.mu.Lock()
	for _, p := range recorded {
		a.start(ctx, p, true)
	}
	a.mu.Unlock()
	a.running.Go(func() { a.Node.run(ctx, a) })
	if a.Host != nil {
		a.running.Go(func() { newEvictor(a, a.Host).run(ctx) })
	}
	a.services.start(ctx)
	newProvisioner(a).start(ctx)
	if a.Node.Network != nil {
		a.running.Go(func() { a.Node.Network.run(ctx, a) })
	}
	a.running.Go(func() {
		path := "/api/v1/pods"
		kubeapi.Watch[corev1.Pod](ctx, a.Client, path, "spec.nodeName="+a.Node.Name, &podHandler{a, ctx})
	})
	return a.Engine.Watch(ctx, a.changed)
}

// podHandler receives the pods that are bound to the node.
type podHandler struct {
	*Agent
	ctx context.Context
}

// Replace updates the workers from the complete list. A pod in it that is refused counts as present: its worker is
// not orphaned.
func (h *podHandler) Replace(pods []*corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.online()
	present := map[types.UID]bool{}
	for _, p := range pods {
		present[p.UID] = true
		h.update(p)
	}
	for uid, w := range h.workers {
		if !present[uid] {
			w.orphan()
		}
	}
	h.startRecorded()
}

// Event updates one worker.
func (h *podHandler) Event(kind watch.EventType, p *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.online()
	if kind != watch.Deleted {
		h.update(p)
	} else if w := h.workers[p.UID]; w != nil {
		w.orphan()
	}
}

// Failed reports that the API server cannot be reached. The recorded pods start without it.
func (h *podHandler) Failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text := err.Error(); h.offline != text {
		h.offline = text
		report.Print(h.ErrOut, fmt.Errorf("read the pods of node %s: %w", h.Node.Name, err))
	}
	h.startRecorded()
}

// online reports that the API server can be reached again. The caller holds mu.
func (a *Agent) online() {
	if a.offline != "" {
		a.offline = ""
		fmt.Fprintln(a.ErrOut, "podrun: the API server can be reached again")
	}
}

// isOffline reports whether the API server cannot be reached, or does not send the pods.
func (a *Agent) isOffline() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offline != ""
}

// startRecorded lets the recorded pods start.
func (a *Agent) startRecorded() { a.once.Do(func() { close(a.mayStart) }) }

// update passes a pod to its worker, unless its identity is not valid. The caller holds mu.
func (h *podHandler) update(p *corev1.Pod) {
	err := checkIdentity(p)
	w := h.workers[p.UID]
	if err == nil && p.Spec.NodeName != h.Node.Name {
		err = fmt.Errorf("it is bound to node %q", p.Spec.NodeName)
	}
	if err == nil && w != nil && (w.namespace != p.Namespace || w.name != p.Name) {
		err = fmt.Errorf("its UID %s is also the UID of pod %s/%s", p.UID, w.namespace, w.name)
	}
	switch {
	case err != nil:
		report.Print(h.ErrOut, fmt.Errorf("the API server's pod %q in namespace %q is refused: %w", p.Name, p.Namespace, err))
	case w != nil:
		w.update(p, true)
	default:
		h.start(h.ctx, p, false)
	}
}

// checkIdentity refuses an object whose namespace, name or UID is not valid in Kubernetes: podrun makes names of files
// from them (Kubernetes: pkg/apis/core/validation, ValidatePodName, ValidateNamespaceName; a UID is an RFC 4122 UUID,
// for a static pod a hash).
func checkIdentity(o metav1.Object) error {
	for _, bad := range [][]string{validation.IsDNS1123Subdomain(o.GetName()), validation.IsDNS1123Label(o.GetNamespace()), validation.IsDNS1123Label(string(o.GetUID()))} {
		if len(bad) > 0 {
			return errors.New(bad[0])
		}
	}
	return nil
}

// start starts the worker of a pod. A recorded pod that is on this host, or of which the API server has the phase
// Running, was admitted earlier. The caller holds mu.
func (a *Agent) start(ctx context.Context, p *corev1.Pod, recorded bool) {
	w := newWorker(a, p, recorded)
	if recorded {
		local, err := a.Engine.Find(p.Namespace, p.Name)
		w.admitted = err != nil || local != nil && local.UID == p.UID || p.Status.Phase == corev1.PodRunning
	}
	a.workers[p.UID] = w
	a.running.Go(func() {
		begin := a.Node.known // it is admitted by the node's labels and taints
		if recorded {
			begin = a.mayStart
		}
		select {
		case <-begin:
			w.run(ctx)
		case <-ctx.Done():
		}
	})
}

// changed wakes the workers of the pods of a name, and the pod network, because the first pod may have started.
func (a *Agent) changed(namespace, name string) {
	a.Node.Network.wake()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if w.namespace == namespace && w.name == name {
			w.wake()
		}
	}
}

// forget removes what is left of a pod, ends its worker, and wakes the worker of the next pod of its name.
func (a *Agent) forget(ctx context.Context, w *worker) error {
	a.objects.release(w)
	for _, r := range a.ownReferences(w) {
		if err := a.Engine.DeleteObject(ctx, r); err != nil {
			return err
		}
	}
	if err := a.Records.Remove(w.uid); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.workers, w.uid)
	a.mu.Unlock()
	a.changed(w.namespace, w.name)
	return nil
}

// ownReferences returns the objects to which only a worker's pod refers, and no other pod of the node.
func (a *Agent) ownReferences(w *worker) (references []Reference) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.gone = true // if two pods are removed at the same time, the later one removes what both refer to
	used := map[Reference]bool{}
	for _, o := range a.workers {
		if !o.gone {
			maps.Copy(used, objectsOf(o.current()))
		}
	}
	p := w.current()
	for r := range objectsOf(p) {
		if !used[r] {
			references = append(references, r)
		}
	}
	for _, t := range tokensOf(p.DeepCopy()) {
		references = append(references, Reference{kindSecret, p.Namespace, t.secret(p)})
	}
	return references
}

// admit admits a pod, or returns why not. Before it rejects a pod, it reads the node from the API server: the node's
// labels and taints may have changed just before the scheduler chose it (kubelet: pkg/kubelet/lifecycle/predicate.go,
// Admit).
func (a *Agent) admit(ctx context.Context, w *worker, p *corev1.Pod) (*rejection, error) {
	if n := a.Node.object(); n != nil && a.admitOn(n, w, p) == nil {
		return nil, nil
	}
	n, err := a.Node.read(ctx, a.Client)
	if err != nil {
		return nil, err
	}
	return a.admitOn(n, w, p), nil
}

// admitOn admits a pod on a state of the node, or returns why not.
func (a *Agent) admitOn(n *corev1.Node, w *worker, p *corev1.Pod) *rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	var others []*corev1.Pod
	for _, o := range a.workers {
		if o != w && o.admitted && !hasEnded(&o.current().Status) {
			others = append(others, o.current())
		}
	}
	if why := eviction.Refusal(p, resources.QOSClass(p), a.Node.Pressure.conditions()); why != "" {
		return &rejection{eviction.Reason, why}
	}
	if r := admit(p, n, others, a.Sysctls); r != nil {
		return r
	}
	w.admitted = true
	return nil
}

// Find returns the pod of a namespace and a name, and of uid unless that is empty; nil if the node has none. Of two
// pods with the same name it returns the living one.
func (a *Agent) Find(namespace, name string, uid types.UID) (found *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if p := w.current(); w.namespace == namespace && w.name == name && (uid == "" || uid == w.uid) {
			if found == nil || hasEnded(&found.Status) || found.DeletionTimestamp != nil {
				found = p
			}
		}
	}
	return found
}

// List returns the node's pods.
func (a *Agent) List() (pods []*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		pods = append(pods, w.current())
	}
	return pods
}

// requestTime limits a request to the API server.
const requestTime = 30 * time.Second
