package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
)

// Service is a Service of the cluster.
type Service struct {
	*corev1.Service
	Endpoints *pod.Endpoints // to which a connection may lead; nil if they are not known
}

// serviceWatcher keeps the Services of this host as the API server has them.
type serviceWatcher struct {
	*Agent
	services       *collection[corev1.Service]
	endpointSlices *collection[discoveryv1.EndpointSlice]
	changed        chan struct{}
	stored         chan struct{} // closed when the Services were stored, or the API server does not send them
	once           sync.Once

	mu    sync.Mutex
	ready map[types.NamespacedName]bool // pods of this node that are ready endpoints of this host's Services
	told  chan struct{}                 // closed and replaced when ready has been
}

func newServiceWatcher(a *Agent) *serviceWatcher {
	s := &serviceWatcher{Agent: a, changed: make(chan struct{}, 1), stored: make(chan struct{}), told: make(chan struct{})}
	s.services = &collection[corev1.Service]{serviceWatcher: s, kind: "Services"}
	s.endpointSlices = &collection[discoveryv1.EndpointSlice]{serviceWatcher: s, kind: "EndpointSlices", consequence: "connections to Services are refused"}
	return s
}

// start watches until ctx ends.
func (s *serviceWatcher) start(ctx context.Context) {
	s.running.Go(func() { kubeapi.Watch(ctx, s.Client, "/api/v1/services", "", s.services) })
	s.running.Go(func() {
		kubeapi.Watch(ctx, s.Client, "/apis/discovery.k8s.io/v1/endpointslices", "", s.endpointSlices)
	})
	s.running.Go(func() { s.run(ctx) })
}

// wait waits until this host has the Services, or the API server does not send them: a container has their addresses in
// its environment (kubelet: pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables).
func (s *serviceWatcher) wait(ctx context.Context) error {
	select {
	case <-s.stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdraw waits until a pod that is to stop is no longer a ready endpoint of this host's Services: connections that begin after its
// containers have closed their ports would fail. It does not wait longer than limit, nor than three seconds. The kubelet does
// not wait: pods have preStop hooks for this.
func (s *serviceWatcher) withdraw(ctx context.Context, pod types.NamespacedName, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, min(limit, withdrawal))
	defer cancel()
	for {
		s.mu.Lock()
		ready, told := s.ready[pod], s.told
		s.mu.Unlock()
		if !ready {
			return
		}
		select {
		case <-told:
		case <-ctx.Done():
			return
		}
	}
}

// setReady replaces ready.
func (s *serviceWatcher) setReady(ready map[types.NamespacedName]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = ready
	close(s.told)
	s.told = make(chan struct{})
}

const (
	withdrawal   = 3 * time.Second
	servicePause = time.Second      // has at most two changes (kube-proxy: minSyncPeriod, burstRuns)
	serviceRetry = 30 * time.Second // after an error: the host's routes may be others then
)

// run stores the Services whenever they have changed.
func (s *serviceWatcher) run(ctx context.Context) {
	retry := time.NewTimer(serviceRetry)
	defer retry.Stop()
	var problem report.LastError
	var earlier, latest time.Time // when the last two changes were stored
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-retry.C:
		}
		all, ready, ok := s.current()
		if !ok {
			if s.services.isMissing() {
				s.once.Do(func() { close(s.stored) })
			}
			continue
		}
		routes, err := s.hostRoutes()
		if err == nil {
			safe, refused := withSafeAddresses(all, routes)
			stored := s.Engine.PutServices(ctx, safe)
			if stored == nil {
				s.setReady(ready)
			}
			err = errors.Join(refused, stored, s.assignAddresses(ctx, safe))
		}
		if ctx.Err() == nil {
			problem.Print(s.ErrOut, err)
		}
		if err != nil {
			retry.Reset(serviceRetry)
		}
		s.once.Do(func() { close(s.stored) })
		earlier, latest = latest, time.Now()
		if sleep.For(ctx, time.Until(earlier.Add(servicePause))) != nil {
			return
		}
	}
}

// current returns the Services with their endpoints, and the pods of this node that are ready endpoints. ok is false if the API
// server has not sent the Services, or has not answered about the endpoints yet.
func (s *serviceWatcher) current() (all []Service, ready map[types.NamespacedName]bool, ok bool) {
	services, _ := s.services.list()
	parts, partsAnswered := s.endpointSlices.list()
	if services == nil || !partsAnswered {
		return nil, nil, false
	}
	ready = map[types.NamespacedName]bool{}
	of := map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	for name, e := range parts {
		name.Name = e.Labels[discoveryv1.LabelServiceName]
		of[name] = append(of[name], e)
	}
	names := slices.SortedFunc(maps.Keys(services), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	for _, name := range names { // sorted, so that the errors of a call are in the same order each time
		next := Service{Service: services[name]}
		if parts != nil {
			var pods []string
			next.Endpoints, pods = endpointsOf(next.Service, of[name], s.Node.Name)
			for _, pod := range pods {
				ready[types.NamespacedName{Namespace: name.Namespace, Name: pod}] = true
			}
		}
		all = append(all, next)
	}
	return all, ready, true
}

// collection holds all objects of a kind that the API server has sent.
type collection[T any] struct {
	*serviceWatcher
	kind        string
	consequence string // of not having them; "" if there is none to report
	mu          sync.Mutex
	items       map[types.NamespacedName]*T // never changed in place; nil: the API server has not sent them
	answered    bool                        // the API server has sent them, or a watch of them has failed
	problem     report.LastError
}

// isMissing reports whether the API server does not send the objects.
func (c *collection[T]) isMissing() bool {
	items, answered := c.list()
	return answered && items == nil
}

// list returns the objects, and whether the API server has sent them or a watch of them has failed.
func (c *collection[T]) list() (map[types.NamespacedName]*T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items, c.answered
}

// set replaces the objects.
func (c *collection[T]) set(change func(map[types.NamespacedName]*T)) {
	c.mu.Lock()
	items := maps.Clone(c.items)
	if items == nil {
		items = map[types.NamespacedName]*T{}
	}
	change(items)
	c.items, c.answered, c.problem = items, true, report.LastError{}
	c.mu.Unlock()
	c.wake()
}

// wake makes run store the Services.
func (s *serviceWatcher) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// Replace implements kubeapi.Handler.
func (c *collection[T]) Replace(list []*T) {
	c.set(func(items map[types.NamespacedName]*T) {
		clear(items)
		for _, o := range list {
			c.put(items, o)
		}
	})
}

// Event implements kubeapi.Handler.
func (c *collection[T]) Event(kind watch.EventType, o *T) {
	c.set(func(items map[types.NamespacedName]*T) {
		if kind == watch.Deleted {
			delete(items, nameOf(o))
		} else {
			c.put(items, o)
		}
	})
}

// put adds an object, unless its name is not valid in Kubernetes: podrun makes the name of a file from it.
func (c *collection[T]) put(items map[types.NamespacedName]*T, o *T) {
	name := nameOf(o)
	if bad := append(validation.IsDNS1123Subdomain(name.Name), validation.IsDNS1123Label(name.Namespace)...); len(bad) > 0 {
		report.Print(c.ErrOut, fmt.Errorf("the API server's %q in namespace %q is refused: %s", name.Name, name.Namespace, bad[0]))
		return
	}
	any(o).(metav1.Object).SetManagedFields(nil)
	items[name] = o
}

func nameOf[T any](o *T) types.NamespacedName {
	m := any(o).(metav1.Object)
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// Failed implements kubeapi.Handler. The watch of the pods reports that the API server cannot be reached.
func (c *collection[T]) Failed(err error) {
	c.mu.Lock()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if c.consequence != "" {
			err = fmt.Errorf("%w: %s", err, c.consequence)
		}
		err = fmt.Errorf("read the cluster's %s: %w", c.kind, err)
		if apierrors.IsForbidden(err) {
			err = report.New(report.Failure, "kubectl create clusterrolebinding podrun-nodes --clusterrole=system:node-proxier --group=system:nodes", "%w", err)
		}
		c.problem.Print(c.ErrOut, err)
	}
	c.answered = true
	c.mu.Unlock()
	c.wake()
}
