package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/node/nodetest"
)

// fakeEngine is a host. Its pods have no processes; a test ends their containers.
type fakeEngine struct {
	mu        sync.Mutex
	pods      map[string]*Local       // by name
	log       []string                // starts, stops and removals
	claims    []string                // that were stored, each with its volume
	refused   RefusedContainers       // the result of changes
	volumes   []string                // that were made and removed
	volumeErr error                   // the result of MakeVolume and RemoveVolume
	services  []string                // the names of the cluster's
	evictErr  error                   // the result of Evict
	evicted   func()                  // is called for every pod that Evict has ended
	removed   func(name string) error // the result of Remove; nil: it removes all
	lost      bool                    // the ends of containers are not recorded
	changed   func(namespace, name string)
}

// do calls f with the lock, and notifies the agent of a pod.
func (e *fakeEngine) do(name string, f func()) {
	e.mu.Lock()
	f()
	changed := e.changed
	e.mu.Unlock()
	if changed != nil {
		changed("default", name)
	}
}

// calls returns what the agent has done.
func (e *fakeEngine) calls() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.log, ", ")
}

// image returns the image of a pod's container.
func (e *fakeEngine) image(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pods[name].Pod.Spec.Containers[0].Image
}

// restart counts a restart of a pod's container.
func (e *fakeEngine) restart(name string) {
	e.do(name, func() { e.pods[name].Pod.Status.ContainerStatuses[0].RestartCount++ })
}

func (e *fakeEngine) Find(_, name string) (*Local, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.pods[name]; l != nil {
		found := *l
		found.Pod = l.Pod.DeepCopy()
		return &found, nil
	}
	return nil, nil
}

func (e *fakeEngine) Apply(_ context.Context, uid types.UID, m *corev1.Pod) (err error) {
	e.do(m.Name, func() {
		if len(e.refused) > 0 {
			err = e.refused
		}
		if l := e.pods[m.Name]; l == nil || !l.Alive {
			p := m.DeepCopy()
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
			e.pods[m.Name] = &Local{UID: uid, Alive: true, Pod: p}
			e.log = append(e.log, "start "+m.Name)
		} else {
			l.Pod.Spec = *m.Spec.DeepCopy()
		}
	})
	return err
}

func (e *fakeEngine) Stop(_ context.Context, _, name string, grace int64) error {
	e.do(name, func() {
		l := e.pods[name]
		if l.Alive, l.Ended = false, !e.lost; !e.lost {
			l.Pod.Status.Phase, l.Pod.Status.ContainerStatuses[0].State = corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}
		}
		e.log = append(e.log, fmt.Sprintf("stop %s in %d", name, grace))
	})
	return nil
}

func (e *fakeEngine) Remove(_ context.Context, _, name string) (err error) {
	e.do(name, func() {
		if e.removed != nil {
			if err = e.removed(name); err != nil {
				return
			}
		}
		delete(e.pods, name)
		e.log = append(e.log, "remove "+name)
	})
	return err
}

func (e *fakeEngine) Watch(ctx context.Context, changed func(namespace, name string)) error {
	e.mu.Lock()
	e.changed = changed
	e.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (e *fakeEngine) PutServices(_ context.Context, all []Service) error {
	e.do("", func() {
		e.services = nil
		for _, s := range all {
			e.services = append(e.services, s.Name)
		}
	})
	return nil
}

func (e *fakeEngine) PutClaim(_ context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	e.do(claim.Name, func() { e.claims = append(e.claims, claim.Name+" on "+volume.Name) })
	return nil
}

func (e *fakeEngine) MakeVolume(name string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.volumes = append(e.volumes, "make "+name)
	return "/volumes/" + name, e.volumeErr
}

func (e *fakeEngine) RemoveVolume(name, dir string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if dir != "/volumes/"+name {
		return errors.New("podrun did not make it")
	}
	e.volumes = append(e.volumes, "remove "+name)
	return e.volumeErr
}

func (*fakeEngine) SetCondition(context.Context, string, string, *corev1.PodCondition) error {
	return nil
}
func (*fakeEngine) Events(string, string) ([]corev1.Event, error)         { return nil, nil }
func (*fakeEngine) PutConfigMap(context.Context, *corev1.ConfigMap) error { return nil }
func (*fakeEngine) PutSecret(context.Context, *corev1.Secret) error       { return nil }
func (*fakeEngine) DeleteObject(context.Context, Reference) error         { return nil }

// output is what an agent prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// patience bounds every wait: a busy machine needs much longer than an idle one.
const patience = 2 * time.Minute

// waitFor waits until ok is true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("wait for %s: not within %v", what, patience)
		}
	}
}

// bed is a host with its API server.
type bed struct {
	*nodetest.APIServer
	engine  *fakeEngine
	records Records
	out     *output
	agent   *Agent         // the last one
	routes  []netip.Prefix // of the host

	pressure *Pressure
	host     Host     // at which the test has the agent look, by step
	loop     bool     // the agent looks by itself, too
	evictor  *evictor // nil before the first step
	devices  map[corev1.ResourceName]int64
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{APIServer: nodetest.StartAPIServer(t), engine: &fakeEngine{pods: map[string]*Local{}}, records: Records(t.TempDir()), out: &output{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent did %s, and printed\n%s", b.engine.calls(), b.out)
		}
	})
	return b
}

// run runs an agent until the returned function, or the test, ends it.
func (b *bed) run(t *testing.T) (end func()) {
	t.Helper()
	facts := func() (*Facts, error) {
		return &Facts{MilliCPU: 4000, Memory: 8 << 30, Storage: 1 << 40, Devices: b.devices}, nil
	}
	a := &Agent{Client: b.Client(t), Engine: b.engine, Records: b.records, ErrOut: b.out, Node: &Registration{Name: "attic", Addresses: []string{"192.0.2.7"}, MaxPods: 110, Facts: facts, Pressure: b.pressure}, Routes: func() ([]netip.Prefix, error) { return b.routes, nil }}
	if b.agent = a; b.loop {
		a.Host = b.host
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	end = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(end)
	return end
}

// waitRunning waits until the API server has the pod's status Running.
func (b *bed) waitRunning(t *testing.T, name string) {
	t.Helper()
	waitFor(t, "pod "+name+" runs", func() bool { return b.Pod(name).Status.Phase == corev1.PodRunning })
}

const uid1, uid2 = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"

// TestAgentStartsAndStops: a pod of the API server is started, and its status reported; it stops in its grace period
// when it is deleted, and then it is gone.
func TestAgentStartsAndStops(t *testing.T) {
	b := newBed(t)
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	if p := b.Pod("web"); p.Status.HostIP != "192.0.2.7" || len(p.Status.ContainerStatuses) != 1 {
		t.Errorf("its status: %+v", p.Status)
	}
	deleted := b.Pod("web")
	deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(3))
	b.PutPod(t, deleted)
	waitFor(t, "the pod is gone", func() bool { return b.Pod("web") == nil })
	waitFor(t, "its record is gone", func() bool { list, err := b.records.Load(); return err == nil && len(list) == 0 })
	if got := b.engine.calls(); got != "start web, stop web in 3, remove web" {
		t.Errorf("the agent did %s", got)
	}
}

// TestEndIsReported: a pod is not deleted from the API server before the server has a final status of it, whatever is
// known of its containers. The condition that it is scheduled is of its current generation.
func TestEndIsReported(t *testing.T) {
	for name, end := range map[string]func(e *fakeEngine){
		"its end is known":   func(*fakeEngine) {},
		"its end is unknown": func(e *fakeEngine) { e.lost = true },
		"the host lost it":   func(e *fakeEngine) { e.do("web", func() { delete(e.pods, "web") }) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			last := make(chan corev1.PodStatus, 1)
			b.SetHook(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete {
					last <- b.Pod("web").Status
				}
				return false
			})
			b.run(t)
			p := nodetest.NewPod("web", uid1)
			p.Generation, p.Status.Conditions = 3, []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1}}
			b.PutPod(t, p)
			b.waitRunning(t, "web")
			if c := b.Pod("web").Status.Conditions; c[0].ObservedGeneration != 3 {
				t.Errorf("the conditions are %+v", c)
			}
			deleted := b.Pod("web")
			deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(3))
			end(b.engine)
			b.PutPod(t, deleted)
			waitFor(t, "the pod is gone", func() bool { return b.Pod("web") == nil })
			st := <-last
			if c := st.ContainerStatuses[0]; st.Phase != corev1.PodFailed || c.State.Terminated == nil {
				t.Errorf("at the deletion the status was %+v", st)
			}
		})
	}
}

// TestRefusedContainer: an ephemeral container that is refused has a status with the reason, which kubectl debug prints.
func TestRefusedContainer(t *testing.T) {
	b := newBed(t)
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	b.engine.do("web", func() { b.engine.refused = RefusedContainers{"bad": errors.New("it is privileged")} })
	p := b.Pod("web")
	for _, name := range []string{"bad", "good"} {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "image"}})
	}
	b.PutPod(t, p)
	waitFor(t, "its status", func() bool { return len(b.Pod("web").Status.EphemeralContainerStatuses) > 0 })
	if all := b.Pod("web").Status.EphemeralContainerStatuses; len(all) != 1 || all[0].Name != "bad" || all[0].State.Waiting == nil || all[0].State.Waiting.Reason != "CreateContainerError" || all[0].State.Waiting.Message != "it is privileged" {
		t.Errorf("the status has %+v", all)
	}
	b.engine.do("web", func() { b.engine.refused = nil })
	p = b.Pod("web")
	p.Labels = map[string]string{"changed": "again"}
	b.PutPod(t, p)
	waitFor(t, "the status is gone", func() bool { return len(b.Pod("web").Status.EphemeralContainerStatuses) == 0 })
}

// TestAgentRestart: the next agent takes up the pods that run, and stops those that the API server has deleted
// meanwhile.
func TestAgentRestart(t *testing.T) {
	b := newBed(t)
	end := b.run(t)
	b.PutPod(t, nodetest.NewPod("kept", uid1))
	b.PutPod(t, nodetest.NewPod("deleted", uid2))
	b.waitRunning(t, "kept")
	b.waitRunning(t, "deleted")
	end()
	b.Remove(kubeapi.PodPath("default", "deleted"))
	b.run(t)
	waitFor(t, "the deleted pod is removed", func() bool { return strings.HasSuffix(b.engine.calls(), "remove deleted") })
	if got := b.engine.calls(); strings.Count(got, "start") != 2 || !strings.Contains(got, "stop deleted in 7") || strings.Contains(got, "stop kept") {
		t.Errorf("the agents did %s", got)
	}
}

// TestAPIServerAway: without the API server nothing is stopped. What has changed is reported when it is back.
func TestAPIServerAway(t *testing.T) {
	b := newBed(t)
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	b.SetAway(true)
	b.engine.restart("web")
	waitFor(t, "the agent reports the server's absence", func() bool { return strings.Contains(b.out.String(), "read the pods of node attic") })
	b.SetAway(false)
	waitFor(t, "the restart is reported", func() bool {
		st := b.Pod("web").Status.ContainerStatuses
		return len(st) == 1 && st[0].RestartCount == 1
	})
	waitFor(t, "the agent reports the server's return", func() bool { return strings.Contains(b.out.String(), "the API server can be reached again") })
	if got := b.engine.calls(); got != "start web" {
		t.Errorf("the agent did %s", got)
	}
}

// TestColdCache: an agent that starts while the API server does not answer, or answers with errors, starts the
// recorded pods and deletes none.
func TestColdCache(t *testing.T) {
	for name, hook := range map[string]func(w http.ResponseWriter) bool{
		"no answer": func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		"an error": func(w http.ResponseWriter) bool {
			http.Error(w, "overloaded", http.StatusInternalServerError)
			return true
		},
		"no JSON": func(w http.ResponseWriter) bool { fmt.Fprint(w, "<html>"); return true },
		"another kind": func(w http.ResponseWriter) bool {
			nodetest.Respond(w, http.StatusOK, nodetest.Object{"kind": "Status"})
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			end := b.run(t)
			b.PutPod(t, nodetest.NewPod("web", uid1))
			b.waitRunning(t, "web")
			end()
			b.engine.do("web", func() { b.engine.pods["web"].Alive = false }) // the machine has started again
			b.SetHook(func(w http.ResponseWriter, _ *http.Request) bool { return hook(w) })
			b.run(t)
			waitFor(t, "the pod is started again", func() bool { return b.engine.calls() == "start web, start web" })
			b.SetHook(nil)
			waitFor(t, "the agent reports the server's return", func() bool { return strings.Contains(b.out.String(), "the API server can be reached again") })
			b.waitRunning(t, "web")
			if got := b.engine.calls(); got != "start web, start web" {
				t.Errorf("the agents did %s", got)
			}
		})
	}
}

// TestColdCacheWithoutState: a recorded pod that has run starts again even if the host has lost the pod's state.
func TestColdCacheWithoutState(t *testing.T) {
	b := newBed(t)
	end := b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	waitFor(t, "the record has its phase", func() bool {
		list, err := b.records.Load()
		return err == nil && len(list) == 1 && list[0].Status.Phase == corev1.PodRunning
	})
	end()
	b.engine.do("web", func() { delete(b.engine.pods, "web") })
	b.SetAway(true)
	b.run(t)
	waitFor(t, "the pod is started again", func() bool { return b.engine.calls() == "start web, start web" })
}

// TestLyingAPIServer: pods that the node must not run are refused with a message, and the others run.
func TestLyingAPIServer(t *testing.T) {
	b := newBed(t)
	b.run(t)
	large := nodetest.NewPod("large", uid1)
	large.Annotations = map[string]string{"large": strings.Repeat("x", 9<<20)}
	b.PutPod(t, large)
	b.waitRunning(t, "large")
	send := func(key string, change func(p *corev1.Pod)) {
		p := nodetest.NewPod(key, uid2)
		change(p)
		b.Put(t, kubeapi.PodPath("default", key), p)
	}
	for name, tc := range map[string]struct {
		change  func(p *corev1.Pod)
		message string
	}{
		"path":  {func(p *corev1.Pod) { p.Name = "../../x" }, `pod "../../x" in namespace "default" is refused`},
		"space": {func(p *corev1.Pod) { p.Namespace = "a/b" }, `in namespace "a/b" is refused`},
		"uid":   {func(p *corev1.Pod) { p.UID = "../x" }, `pod "uid" in namespace "default" is refused`},
		"other": {func(p *corev1.Pod) { p.UID = uid1 }, "its UID " + uid1 + " is also the UID of pod default/large"},
	} {
		send(name, tc.change)
		waitFor(t, name+" is refused", func() bool { return strings.Contains(b.out.String(), tc.message) })
	}
	b.SetHook(func(w http.ResponseWriter, r *http.Request) bool { // it ignores the selector of the node
		query := r.URL.Query()
		query.Del("fieldSelector")
		r.URL.RawQuery = query.Encode()
		return false
	})
	send("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "cellar" })
	b.CloseClientConnections() // the agent watches again
	waitFor(t, "the pod of another node is refused", func() bool { return strings.Contains(b.out.String(), `it is bound to node "cellar"`) })
	if got := b.engine.calls(); got != "start large" {
		t.Errorf("the agent did %s", got)
	}
}
