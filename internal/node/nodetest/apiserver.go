// Package nodetest has an API server for tests of a node.
package nodetest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// APIServer is an API server over TLS. It stores objects of all kinds, lists them by field selectors and sends watches.
type APIServer struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	objects map[string]Object // by their keys
	changes []change
	changed chan struct{} // closed and replaced with every change
	gone    chan struct{} // closed while the server is away
	events  []corev1.Event
	hook    func(w http.ResponseWriter, r *http.Request) bool
}

// Object is an object of any kind as JSON.
type Object = map[string]any

// change is an event of a watch.
type change struct {
	version int
	kind    string
	target  target
	object  Object
}

// target is what a path names.
type target struct{ resource, namespace, name, sub string }

func (t target) key() string { return t.resource + "/" + t.namespace + "/" + t.name }

// parseTarget reads a path as /api/v1/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func parseTarget(path string) target {
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if words[0] == "apis" {
		words = words[1:]
	}
	words = words[2:]
	t := target{}
	if words[0] == "namespaces" && len(words) > 2 {
		t.namespace, words = words[1], words[2:]
	}
	for i, to := range []*string{&t.resource, &t.name, &t.sub} {
		if i < len(words) {
			*to = words[i]
		}
	}
	return t
}

// StartAPIServer starts a server that ends with the test.
func StartAPIServer(t *testing.T) *APIServer {
	t.Helper()
	s := &APIServer{objects: map[string]Object{}, changed: make(chan struct{}), gone: make(chan struct{}), version: 1}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(t.Output(), "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

// Client returns a client of the server.
func (s *APIServer) Client(t *testing.T) *kubeapi.Client {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := kubeapi.NewClient(&kubeapi.Config{Server: s.URL, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// SetAway cuts all connections and answers nothing, or ends that.
func (s *APIServer) SetAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if away {
		close(s.gone)
	} else {
		s.gone = make(chan struct{})
	}
}

// SetHook sets what answers requests before the server; it returns whether it has.
func (s *APIServer) SetHook(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// ServeHTTP answers a request as the API server does.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	gone, hook := s.gone, s.hook
	s.mu.Unlock()
	select {
	case <-gone:
		panic(http.ErrAbortHandler)
	default:
	}
	if hook != nil && hook(w, r) {
		return
	}
	wanted := parseTarget(r.URL.Path)
	if strings.Contains(r.URL.Path, "/events") {
		var e corev1.Event
		if json.NewDecoder(r.Body).Decode(&e) == nil {
			s.mu.Lock()
			s.events = append(s.events, e)
			s.mu.Unlock()
		}
		Respond(w, http.StatusCreated, Object{"kind": "Event", "apiVersion": "v1", "metadata": Object{"name": "event"}})
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, wanted, gone)
		return
	}
	var body Object
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			Respond(w, http.StatusBadRequest, statusOf(apierrors.NewBadRequest(err.Error())))
			return
		}
	}
	code, result := s.handle(r, wanted, body)
	Respond(w, code, result)
}

// Respond answers a request with an object.
func Respond(w http.ResponseWriter, code int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(result)
}

// RespondError answers a request with an error.
func RespondError(w http.ResponseWriter, err *apierrors.StatusError) {
	Respond(w, int(err.ErrStatus.Code), statusOf(err))
}

func statusOf(err *apierrors.StatusError) any {
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	return err.ErrStatus
}

// handle carries out a request.
func (s *APIServer) handle(r *http.Request, wanted target, body Object) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.objects[wanted.key()]
	if wanted.name == "" {
		if r.Method == http.MethodPost {
			name, ok := metadata(body)["name"].(string)
			if !ok {
				name = fmt.Sprint(metadata(body)["generateName"], s.version)
				metadata(body)["name"] = name
			}
			wanted.name = name
			if s.objects[wanted.key()] != nil {
				return http.StatusConflict, statusOf(apierrors.NewAlreadyExists(corev1.Resource(wanted.resource), wanted.name))
			}
			s.set("ADDED", wanted, body)
			return http.StatusCreated, clone(body)
		}
		return http.StatusOK, s.list(r, wanted)
	}
	if has == nil {
		return http.StatusNotFound, statusOf(apierrors.NewNotFound(corev1.Resource(wanted.resource), wanted.name))
	}
	switch {
	case wanted.sub == "eviction":
		metadata(has)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		s.set("MODIFIED", wanted, has)
	case r.Method == http.MethodPut:
		if v := metadata(body)["resourceVersion"]; v != nil && v != metadata(has)["resourceVersion"] {
			return http.StatusConflict, statusOf(apierrors.NewConflict(corev1.Resource(wanted.resource), wanted.name, fmt.Errorf("it has changed")))
		}
		if wanted.sub == "status" {
			next := maps.Clone(has)
			next["metadata"] = maps.Clone(metadata(has))
			next["status"], body = body["status"], next
		}
		s.set("MODIFIED", wanted, body)
		return http.StatusOK, clone(body)
	case r.Method == http.MethodPatch:
		next := merge(has, body)
		s.set("MODIFIED", wanted, next)
		return http.StatusOK, clone(next)
	case r.Method == http.MethodDelete:
		s.set("DELETED", wanted, has)
	}
	return http.StatusOK, clone(has)
}

func metadata(o Object) Object { return o["metadata"].(Object) }

// merge applies a merge patch. Of strategic merge patches it applies only a patch of a node's status.
func merge(o, patch Object) Object {
	o = maps.Clone(o)
	if o == nil {
		o = Object{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(o, k)
		case Object:
			has, _ := o[k].(Object)
			o[k] = merge(has, v)
		case []any:
			has, _ := o[k].([]any)
			o[k] = mergeList(k, has, v)
		default:
			o[k] = v
		}
	}
	return o
}

// mergeList merges lists whose elements have a type, unless the patch replaces the list.
func mergeList(name string, list, patch []any) []any {
	replaces := slices.IndexFunc(patch, func(e any) bool { o, _ := e.(Object); return o["$patch"] == "replace" })
	if replaces >= 0 {
		return slices.Delete(slices.Clone(patch), replaces, replaces+1)
	}
	if name != "conditions" && name != "addresses" {
		return patch
	}
	list = slices.Clone(list)
	for _, e := range patch {
		i := slices.IndexFunc(list, func(had any) bool { return had.(Object)["type"] == e.(Object)["type"] })
		if i < 0 {
			list = append(list, e)
		} else {
			list[i] = merge(list[i].(Object), e.(Object))
		}
	}
	return list
}

// clone returns a copy of an object.
func clone(o Object) (copied Object) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		panic(err)
	}
	return copied
}

// set stores an object, or removes it, for the watches. The caller holds mu.
func (s *APIServer) set(kind string, wanted target, o Object) {
	s.version++
	if kind == "DELETED" {
		delete(s.objects, wanted.key())
		o = merge(o, Object{"metadata": Object{}})
		o["metadata"] = maps.Clone(metadata(o))
	} else {
		s.objects[wanted.key()] = o
	}
	metadata(o)["resourceVersion"] = strconv.Itoa(s.version)
	s.changes = append(s.changes, change{s.version, kind, wanted, clone(o)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// selects reports whether a request selects an object.
func (s *APIServer) selects(r *http.Request, wanted, of target, o Object) bool {
	if of.resource != wanted.resource || wanted.namespace != "" && of.namespace != wanted.namespace {
		return false
	}
	field, value, ok := strings.Cut(r.URL.Query().Get("fieldSelector"), "=")
	if !ok {
		return true
	}
	outer, inner, _ := strings.Cut(field, ".")
	part, _ := o[outer].(Object)
	return part[inner] == value
}

func (s *APIServer) list(r *http.Request, wanted target) any {
	items := []Object{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		words := strings.Split(key, "/")
		if o := s.objects[key]; s.selects(r, wanted, target{resource: words[0], namespace: words[1]}, o) {
			items = append(items, clone(o))
		}
	}
	return Object{"kind": "List", "apiVersion": "v1", "metadata": Object{"resourceVersion": strconv.Itoa(s.version)}, "items": items}
}

// watch sends the changes after a version until the client leaves or the server goes away.
func (s *APIServer) watch(w http.ResponseWriter, r *http.Request, wanted target, gone <-chan struct{}) {
	after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		Respond(w, http.StatusBadRequest, statusOf(apierrors.NewBadRequest(err.Error())))
		return
	}
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	control.Flush()
	for {
		s.mu.Lock()
		changed := s.changed
		var due []change
		for _, c := range s.changes {
			if c.version > after && s.selects(r, wanted, c.target, c.object) {
				due = append(due, c)
			}
		}
		after = s.version
		s.mu.Unlock()
		for _, c := range due {
			json.NewEncoder(w).Encode(Object{"type": c.kind, "object": c.object})
		}
		control.Flush()
		select {
		case <-changed:
		case <-gone:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

// Events returns the reasons and messages of the events of a pod.
func (s *APIServer) Events(name string) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.events {
		if e := &s.events[i]; e.InvolvedObject.Name == name {
			texts = append(texts, e.Reason+": "+e.Message)
		}
	}
	return texts
}

// Put stores an object of a test.
func (s *APIServer) Put(t *testing.T, path string, o any) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var generic Object
	if err := json.Unmarshal(text, &generic); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := parseTarget(path)
	kind := "ADDED"
	if s.objects[wanted.key()] != nil {
		kind = "MODIFIED"
	}
	s.set(kind, wanted, generic)
}

// Remove deletes an object.
func (s *APIServer) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := parseTarget(path)
	s.set("DELETED", wanted, s.objects[wanted.key()])
}

// Pod returns a pod of the default namespace; nil if there is none.
func (s *APIServer) Pod(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[target{resource: "pods", namespace: "default", name: name}.key()]
	if o == nil {
		return nil
	}
	text, _ := json.Marshal(o)
	p := &corev1.Pod{}
	if json.Unmarshal(text, p) != nil {
		return nil
	}
	return p
}

// PutPod stores a pod that is bound to the node attic.
func (s *APIServer) PutPod(t *testing.T, p *corev1.Pod) {
	t.Helper()
	s.Put(t, kubeapi.PodPath("default", p.Name), p)
}

// NewPod returns a pod that is bound to the node attic.
func NewPod(name, uid string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(uid)},
		Spec:       corev1.PodSpec{NodeName: "attic", TerminationGracePeriodSeconds: new(int64(7)), Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}
