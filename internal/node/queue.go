package node

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/report"
)

// queue has the objects of a kind for which the provisioner has something to do. It handles one after the other. As long
// as an object is there, it is handled again: after an error with a back-off, otherwise after lastStart.
type queue[T any] struct {
	*provisioner
	kind, reason string      // reason: of the event about an error
	essential    func(*T) *T // returns what handle needs of an object; nil if there is nothing to do
	handle       func(context.Context, *T) error
	wakeup       chan struct{}

	itemsMu sync.Mutex
	items   map[types.UID]*item[T]
}

// item is an object in a queue.
type item[T any] struct {
	object  *T // never changed in place
	tries   task
	problem report.LastError
}

func newQueue[T any](p *provisioner, kind, reason string, essential func(*T) *T, handle func(context.Context, *T) error) *queue[T] {
	return &queue[T]{provisioner: p, kind: kind, reason: reason, essential: essential, handle: handle, wakeup: make(chan struct{}, 1), items: map[types.UID]*item[T]{}}
}

// Replace implements kubeapi.Handler.
func (q *queue[T]) Replace(list []*T) {
	q.itemsMu.Lock()
	defer q.itemsMu.Unlock()
	had := q.items
	q.items = map[types.UID]*item[T]{}
	for _, o := range list {
		q.put(o, had[metaOf(o).GetUID()])
	}
	q.wake()
}

// Event implements kubeapi.Handler.
func (q *queue[T]) Event(kind watch.EventType, o *T) {
	q.itemsMu.Lock()
	defer q.itemsMu.Unlock()
	uid := metaOf(o).GetUID()
	old := q.items[uid]
	delete(q.items, uid)
	if kind != watch.Deleted {
		q.put(o, old)
	}
	q.wake()
}

// Failed implements kubeapi.Handler.
func (q *queue[T]) Failed(err error) { q.failed(err) }

// put adds an object if there is something to do. old is its former state; nil if it was not in the queue. The caller
// holds itemsMu.
func (q *queue[T]) put(o *T, old *item[T]) {
	if o = q.essential(o); o == nil {
		return
	}
	next := &item[T]{object: o}
	if old != nil {
		next.tries, next.problem = old.tries, old.problem
	}
	q.items[metaOf(o).GetUID()] = next
}

func metaOf[T any](o *T) metav1.Object { return any(o).(metav1.Object) }

// reset ends the back-offs.
func (q *queue[T]) reset() {
	q.itemsMu.Lock()
	defer q.itemsMu.Unlock()
	for _, i := range q.items {
		i.tries.next = time.Time{}
	}
	q.wake()
}

// wake makes run look again.
func (q *queue[T]) wake() {
	select {
	case q.wakeup <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// run handles the objects until ctx ends.
func (q *queue[T]) run(ctx context.Context) {
	for {
		object, pause := q.next()
		if object != nil {
			err := q.handle(ctx, object)
			if ctx.Err() != nil {
				return
			}
			q.finish(ctx, object, err)
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-q.wakeup:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// next returns an object that is due, or how long to wait for one.
func (q *queue[T]) next() (due *T, pause time.Duration) {
	q.itemsMu.Lock()
	defer q.itemsMu.Unlock()
	pause = lastStart
	items := slices.SortedFunc(maps.Values(q.items), func(a, b *item[T]) int { return cmp.Compare(metaOf(a.object).GetUID(), metaOf(b.object).GetUID()) })
	for _, i := range items {
		if i.tries.due() {
			return i.object, 0
		}
		pause = min(pause, time.Until(i.tries.next))
	}
	return nil, pause
}

// finish sets when an object is handled again, and reports an error.
func (q *queue[T]) finish(ctx context.Context, o *T, err error) {
	q.itemsMu.Lock()
	defer q.itemsMu.Unlock()
	i := q.items[metaOf(o).GetUID()]
	if i == nil { // it is gone
		return
	}
	if err == nil {
		i.tries, i.problem = task{next: time.Now().Add(lastStart)}, report.LastError{}
		return
	}
	i.tries.fail(firstRetry, lastStart)
	i.problem.Print(q.ErrOut, err)
	q.warn(ctx, o, err, i.tries.failures)
}

// warn sends an event with an error about an object. It is lost if the API server does not answer.
func (q *queue[T]) warn(ctx context.Context, o *T, cause error, count int) {
	m, now := metaOf(o), metav1.Now()
	hash := fnv.New64a()
	fmt.Fprint(hash, m.GetUID(), q.reason, cause)
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", m.GetName(), hash.Sum64()), Namespace: cmp.Or(m.GetNamespace(), metav1.NamespaceDefault)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: q.kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion()},
		Type:           corev1.EventTypeWarning, Reason: q.reason, Message: cause.Error(), Count: int32(count), FirstTimestamp: now, LastTimestamp: now,
	}
	q.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		_ = q.sendEvent(ctx, e)
	})
}
