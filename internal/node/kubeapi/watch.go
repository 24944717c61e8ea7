package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/sleep"
)

// Handler receives the objects that Watch reads. T is the type of the objects, such as corev1.Pod.
type Handler[T any] interface {
	// Replace receives the complete list: at first, and whenever the objects had to be listed again.
	Replace(items []*T)
	// Event receives a change: watch.Added, watch.Modified or watch.Deleted.
	Event(kind watch.EventType, object *T)
	// Failed receives the reason why the server does not answer or refuses. The watch tries again.
	Failed(err error)
}

const (
	firstPause     = 800 * time.Millisecond // client-go: tools/cache/reflector.go defaultBackoffInit
	lastPause      = 20 * time.Second       // with the jitter 30 s, client-go's defaultBackoffMax
	shortWatch     = time.Second            // a watch that ends sooner is followed by a pause
	minWatch       = 5 * time.Minute        // client-go: defaultMinWatchTimeout
	watchTolerance = time.Minute            // how much longer a watch may last than it was requested for
)

// Watch lists the objects at path and then watches them, until ctx ends. It calls h in the goroutine of its caller, in
// the order of the server. A watch whose connection was cut continues where it was. After 410 Gone, or after an answer
// that cannot be read, the objects are listed again. After a failure Watch waits 0.8 s, after further failures up to
// 30 s, or as long as the server asks for.
func Watch[T any](ctx context.Context, c *Client, path, fieldSelector string, h Handler[T]) {
	w := &watcher[T]{client: c, path: path, selector: fieldSelector, handler: h, version: "0"}
	for pause := firstPause; ctx.Err() == nil; {
		steady, err := w.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !gone(err) {
			h.Failed(err)
		}
		if steady {
			if pause = firstPause; err == nil {
				continue
			}
		}
		wait := max(pause+rand.N(pause/2), retryAfter(err))
		if sleep.For(ctx, wait) != nil {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// watcher is the state of a Watch.
type watcher[T any] struct {
	client   *Client
	path     string
	selector string
	handler  Handler[T]
	listed   bool
	version  string // resourceVersion at which the next list or watch begins; empty: the most recent
}

// objectList is the list of any kind of objects.
type objectList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []*T `json:"items"`
}

// run lists the objects if that is necessary, and watches them until the watch ends. steady reports whether the
// watch lasted for a while.
func (w *watcher[T]) run(ctx context.Context) (steady bool, err error) {
	if !w.listed {
		if err := w.list(ctx); err != nil {
			if versionRefused(err) {
				w.version = ""
			}
			return false, err
		}
		w.listed = true
	}
	start := time.Now()
	received, err := w.watch(ctx)
	steady = time.Since(start) >= shortWatch
	var invalid *invalidEvent
	switch {
	case gone(err):
		w.listed, w.version = false, ""
	case errors.As(err, &invalid) || versionRefused(err):
		w.listed = false
	case err == nil && !steady && !received:
		err = errors.New("the server ended it at once")
	}
	if err != nil {
		err = fmt.Errorf("watch %s: %w", w.path, err)
	}
	return steady, err
}

// list reads all objects. Version 0 permits the server to answer from its cache (client-go:
// tools/cache/reflector.go relistResourceVersion).
func (w *watcher[T]) list(ctx context.Context) error {
	query := url.Values{}
	if w.version != "" {
		query.Set("resourceVersion", w.version)
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	var l objectList[T]
	if err := w.client.attempt(ctx, request{method: http.MethodGet, path: w.withQuery(query)}, &l); err != nil {
		return fmt.Errorf("list %s: %w", w.path, err)
	}
	// An answer that is not a list must not be taken for an empty list: the handler would remove everything.
	if !strings.HasSuffix(l.Kind, "List") || l.ResourceVersion == "" || l.Continue != "" {
		return fmt.Errorf("list %s: the server's answer is not a complete list", w.path)
	}
	for _, item := range l.Items {
		if versionOf(item) == "" {
			return fmt.Errorf("list %s: an object has no resourceVersion", w.path)
		}
	}
	w.version = l.ResourceVersion
	w.handler.Replace(l.Items)
	return nil
}

// watch reads events until the watch ends, and reports whether there was one. A cut connection is an error.
func (w *watcher[T]) watch(ctx context.Context) (received bool, err error) {
	timeout := minWatch + rand.N(minWatch)
	ctx, cancel := context.WithTimeout(ctx, timeout+watchTolerance) // a server may ignore timeoutSeconds
	defer cancel()
	resp, err := w.client.open(ctx, request{method: http.MethodGet, path: w.withQuery(url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"resourceVersion":     {w.version},
		"timeoutSeconds":      {strconv.Itoa(int(timeout.Seconds()))},
	})})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body := &eventReader{body: resp.Body}
	decoder := json.NewDecoder(body)
	for {
		body.left = objectLimit
		var event rawEvent
		err := decoder.Decode(&event)
		switch {
		case errors.Is(err, io.EOF) || ctx.Err() != nil:
			return received, nil
		case isInvalid(err):
			return received, &invalidEvent{err}
		case err != nil:
			return received, fmt.Errorf("read an event: %w", err)
		}
		if err := w.handle(event); err != nil {
			return received, err
		}
		received = true
	}
}

// rawEvent is an event of a watch.
type rawEvent struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// handle passes an event on, and remembers its version.
func (w *watcher[T]) handle(event rawEvent) error {
	if event.Type == watch.Error {
		status := &apierrors.StatusError{}
		if err := json.Unmarshal(event.Object, &status.ErrStatus); err != nil {
			return &invalidEvent{err}
		}
		return status
	}
	object := new(T)
	if err := json.Unmarshal(event.Object, object); err != nil {
		return &invalidEvent{err}
	}
	version := versionOf(object)
	if version == "" {
		return &invalidEvent{errors.New("the object has no resourceVersion")}
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		w.handler.Event(event.Type, object)
	case watch.Bookmark:
	default:
		return &invalidEvent{fmt.Errorf("the type %q is unknown", event.Type)}
	}
	w.version = version
	return nil
}

// withQuery returns the path with a query, to which it adds the field selector.
func (w *watcher[T]) withQuery(query url.Values) string {
	if w.selector != "" {
		query.Set("fieldSelector", w.selector)
	}
	return w.path + "?" + query.Encode()
}

// versionOf returns the resourceVersion of an object, or "" if it has none.
func versionOf[T any](object *T) string {
	if o, ok := any(object).(metav1.Object); ok && object != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// invalidEvent is the error for an event that cannot be read.
type invalidEvent struct{ err error }

func (e *invalidEvent) Error() string {
	return "the server sent an event that is not valid: " + e.err.Error()
}
func (e *invalidEvent) Unwrap() error { return e.err }

// gone reports whether the server no longer has the changes since the version.
func gone(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// versionRefused reports whether the server may have refused a request because of its resourceVersion: it is too old,
// unknown, or in the future (client-go: tools/cache/reflector.go isTooLargeResourceVersionError).
func versionRefused(err error) bool {
	return gone(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsTimeout(err)
}

// isInvalid distinguishes an event that cannot be read from a connection that is cut.
func isInvalid(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, errTooLarge)
}

var errTooLarge = fmt.Errorf("it is larger than %d MiB", objectLimit>>20)

// eventReader limits how much is read for one event.
type eventReader struct {
	body io.Reader
	left int
}

func (r *eventReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errTooLarge
	}
	n, err := r.body.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
