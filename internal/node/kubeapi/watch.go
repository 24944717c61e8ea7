package kubeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/sleep"
)

// Handler receives the objects of a watch, one call after the other.
type Handler[T any] interface {
	// Replace receives the complete list, at first and whenever the watch has to begin again.
	Replace(items []*T)
	// Event receives a change: watch.Added, watch.Modified or watch.Deleted.
	Event(kind watch.EventType, item *T)
	// Failed receives why the server does not answer. The watch tries again.
	Failed(err error)
}

// Back-off of a watch that fails (client-go: tools/cache, reflector).
const (
	firstBackOff = 800 * time.Millisecond
	lastBackOff  = 30 * time.Second
)

// Watch lists the objects of a path that a field selector matches, and watches them until ctx ends.
func Watch[T any](ctx context.Context, c *Client, path, fieldSelector string, h Handler[T]) {
	w := watcher[T]{c, path, url.Values{"fieldSelector": {fieldSelector}}, h}
	for failures := 0; ctx.Err() == nil; {
		version, err := w.list(ctx)
		for err == nil && ctx.Err() == nil {
			failures = 0
			version, err = w.watch(ctx, version)
		}
		if ctx.Err() != nil {
			return
		}
		if !isExpired(err) {
			h.Failed(err)
		}
		wait := min(firstBackOff<<min(failures, 10), lastBackOff)
		failures++
		_ = sleep.For(ctx, wait/2+rand.N(wait)) // ends with ctx, which the loop checks
	}
}

// isExpired reports whether the server does not have the history any longer from which the watch was to go on.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

type watcher[T any] struct {
	*Client
	path    string
	query   url.Values
	handler Handler[T]
}

// list reads all objects, and returns the version from which the watch goes on.
func (w *watcher[T]) list(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*responseTime)
	defer cancel()
	answer, err := w.request(ctx, http.MethodGet, w.path+"?"+w.query.Encode(), "", nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := readLimited(answer.Body, maxList)
	var list struct {
		metav1.ListMeta `json:"metadata"`
		Items           []*T `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err == nil && list.ResourceVersion == "" {
		err = errors.New("it is no list with a resourceVersion")
	}
	if err != nil {
		return "", fmt.Errorf("read the list %s of the API server: %w", w.path, err)
	}
	w.handler.Replace(list.Items)
	return list.ResourceVersion, nil
}

// event is one line of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch passes changes on until the server ends the watch, and returns the version of the last one.
func (w *watcher[T]) watch(ctx context.Context, version string) (string, error) {
	limit := 5*time.Minute + rand.N(5*time.Minute)
	ctx, cancel := context.WithTimeout(ctx, limit+responseTime)
	defer cancel()
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version}, "timeoutSeconds": {fmt.Sprint(int(limit.Seconds()))}}
	for name, values := range w.query {
		query[name] = values
	}
	answer, err := w.request(ctx, http.MethodGet, w.path+"?"+query.Encode(), "", nil)
	if err != nil {
		return version, err
	}
	defer answer.Body.Close()
	began, lines := time.Now(), bufio.NewReaderSize(nil, 4096)
	body := &limitedLines{source: answer.Body}
	lines.Reset(body)
	for decoder := json.NewDecoder(lines); ; {
		var e event
		body.left = maxObject
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			if time.Since(began) < time.Second { // a server that ends every watch at once
				return version, fmt.Errorf("watch %s: the API server ended the watch at once", w.path)
			}
			return version, nil
		}
		if err == nil {
			version, err = w.pass(&e, version)
		}
		if err != nil {
			return version, fmt.Errorf("watch %s: %w", w.path, err)
		}
	}
}

// pass passes one event on.
func (w *watcher[T]) pass(e *event, version string) (string, error) {
	switch e.Type {
	case watch.Error:
		st := metav1.Status{}
		if err := json.Unmarshal(e.Object, &st); err != nil {
			return version, err
		}
		return version, &apierrors.StatusError{ErrStatus: st}
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return version, fmt.Errorf("the API server sent an event of the unknown type %q", e.Type)
	}
	var meta struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &meta); err != nil {
		return version, err
	}
	if meta.ResourceVersion == "" {
		return version, errors.New("the API server sent an object without a resourceVersion")
	}
	if e.Type == watch.Bookmark {
		return meta.ResourceVersion, nil
	}
	item := new(T)
	if err := json.Unmarshal(e.Object, item); err != nil {
		return version, err
	}
	w.handler.Event(e.Type, item)
	return meta.ResourceVersion, nil
}

// limitedLines reads until more than left bytes were read since left was set.
type limitedLines struct {
	source io.Reader
	left   int64
}

func (l *limitedLines) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w of %d MiB", errTooLarge, maxObject>>20)
	}
	n, err := l.source.Read(p)
	l.left -= int64(n)
	return n, err
}
