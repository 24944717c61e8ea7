package node

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// objectWatcher keeps the ConfigMaps and Secrets to which the node's pods refer up to date on this host. It watches
// each object by its name: the API server's node authorizer permits no more.
type objectWatcher struct {
	agent   *Agent
	ctx     context.Context
	mu      sync.Mutex
	watched map[Reference]*watchedObject
}

// watchedObject is the watch of one object.
type watchedObject struct {
	*objectWatcher
	ref     Reference
	holders map[*worker]bool
	cancel  context.CancelFunc
	once    sync.Once
	tried   chan struct{} // closed when the API server has answered, or the watch has failed

	mu       sync.Mutex
	released bool
	store    func() error // stores the object, or removes it
	err      error        // why this host does not have the object
	problem  report.LastError
}

func newObjectWatcher(ctx context.Context, a *Agent) *objectWatcher {
	return &objectWatcher{agent: a, ctx: ctx, watched: map[Reference]*watchedObject{}}
}

// hold stores the objects of a pod, and keeps them up to date until release. An object that does not exist is no error:
// the container that needs it waits for it. If the API server does not answer, the pod starts with the objects that
// this host has.
func (o *objectWatcher) hold(ctx context.Context, w *worker, refs map[Reference]bool) error {
	var objects []*watchedObject
	o.mu.Lock()
	for ref := range refs {
		x := o.watched[ref]
		if x == nil {
			x = o.watch(ref)
		}
		x.holders[w] = true
		objects = append(objects, x)
	}
	o.mu.Unlock()
	for _, x := range objects {
		select {
		case <-x.tried:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := x.retry(); err != nil {
			return err
		}
	}
	return nil
}

// release ends the watches that only a worker has held.
func (o *objectWatcher) release(w *worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref, x := range o.watched {
		if delete(x.holders, w); len(x.holders) == 0 {
			x.cancel()
			x.mu.Lock()
			x.released = true // mu is held: a store under way has ended
			x.mu.Unlock()
			delete(o.watched, ref)
		}
	}
}

// watch starts to watch an object. The caller holds mu.
func (o *objectWatcher) watch(ref Reference) *watchedObject {
	ctx, cancel := context.WithCancel(o.ctx)
	x := &watchedObject{objectWatcher: o, ref: ref, holders: map[*worker]bool{}, cancel: cancel, tried: make(chan struct{})}
	o.watched[ref] = x
	namespace, selector := "/api/v1/namespaces/"+url.PathEscape(ref.Namespace), "metadata.name="+ref.Name
	o.agent.running.Go(func() {
		if ref.Kind == kindSecret {
			kubeapi.Watch(ctx, o.agent.Client, namespace+"/secrets", selector, &objectHandler[corev1.Secret]{x, o.agent.Engine.PutSecret})
		} else {
			kubeapi.Watch(ctx, o.agent.Client, namespace+"/configmaps", selector, &objectHandler[corev1.ConfigMap]{x, o.agent.Engine.PutConfigMap})
		}
	})
	return x
}

// retry stores the object again if that has failed: the user's object of the same name may be gone by now.
func (x *watchedObject) retry() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		x.err = x.store()
	}
	return x.err
}

// do stores or removes the object.
func (x *watchedObject) do(store func() error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.released {
		return
	}
	x.store, x.err = store, store()
	x.print(x.err)
	x.once.Do(func() { close(x.tried) })
}

// print prints an error that differs from the last one. The caller holds mu.
func (x *watchedObject) print(err error) {
	if x.ctx.Err() == nil {
		x.problem.Print(x.agent.ErrOut, err)
	}
}

// objectHandler stores what a watch of one object receives.
type objectHandler[T any] struct {
	*watchedObject
	put func(context.Context, *T) error
}

// Replace stores the object, or removes it if the API server does not have it.
func (h *objectHandler[T]) Replace(items []*T) {
	if len(items) == 0 {
		h.delete()
		return
	}
	h.set(items[0])
}

// Event stores or removes the object.
func (h *objectHandler[T]) Event(kind watch.EventType, item *T) {
	if kind == watch.Deleted {
		h.delete()
		return
	}
	h.set(item)
}

// set stores the object. It refuses any other object than the watched one: it could replace an object of another pod.
func (h *objectHandler[T]) set(item *T) {
	h.do(func() error {
		if o, ok := any(item).(metav1.Object); !ok || o.GetNamespace() != h.ref.Namespace || o.GetName() != h.ref.Name {
			return fmt.Errorf("read %s %s/%s: the API server's answer is another object", h.ref.Kind, h.ref.Namespace, h.ref.Name)
		}
		return h.put(h.ctx, item)
	})
}

func (h *objectHandler[T]) delete() {
	h.do(func() error { return h.agent.Engine.DeleteObject(h.ctx, h.ref) })
}

// Failed lets the pods go on with what this host has of the object.
func (h *objectHandler[T]) Failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.print(fmt.Errorf("read %s %s/%s: %w", h.ref.Kind, h.ref.Namespace, h.ref.Name, err))
	h.once.Do(func() { close(h.tried) })
}
