package node

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// objectWatcher keeps the ConfigMaps and Secrets to which the node's pods refer as the API server has them. It watches
// each by its name: the API server's node authorizer permits no more.
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
	tried   chan struct{} // closed when the API server has answered, or does not

	mu     sync.Mutex
	failed error // why this host does not have the object
}

func newObjectWatcher(ctx context.Context, a *Agent) *objectWatcher {
	return &objectWatcher{agent: a, ctx: ctx, watched: map[Reference]*watchedObject{}}
}

// hold makes the objects of a pod present, and keeps them up to date until release. An object that does not exist is
// no error: the container that needs it waits for it. If the API server does not answer, the pod starts with what
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
		if err := x.problem(); err != nil {
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

func (x *watchedObject) problem() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// done records the result of storing or removing the object.
func (x *watchedObject) done(err error) {
	x.mu.Lock()
	x.failed = err
	x.mu.Unlock()
	if err != nil && x.ctx.Err() == nil {
		report.Print(x.agent.ErrOut, err)
	}
	x.once.Do(func() { close(x.tried) })
}

// objectHandler stores what a watch of one object receives.
type objectHandler[T any] struct {
	*watchedObject
	put func(context.Context, *T) error
}

// Replace stores the object, or removes one that does not exist.
func (h *objectHandler[T]) Replace(items []*T) {
	if len(items) == 0 {
		h.done(h.agent.Engine.DeleteObject(h.ctx, h.ref))
		return
	}
	h.done(h.put(h.ctx, items[0]))
}

// Event stores or removes the object.
func (h *objectHandler[T]) Event(kind watch.EventType, item *T) {
	if kind == watch.Deleted {
		h.done(h.agent.Engine.DeleteObject(h.ctx, h.ref))
		return
	}
	h.done(h.put(h.ctx, item))
}

// Failed lets the pods go on with what this host has of the object.
func (h *objectHandler[T]) Failed(err error) {
	report.Print(h.agent.ErrOut, fmt.Errorf("read %s %s/%s: %w", h.ref.Kind, h.ref.Namespace, h.ref.Name, err))
	h.once.Do(func() { close(h.tried) })
}
