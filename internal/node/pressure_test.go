package node

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/eviction"
	"github.com/podrun/podrun/internal/node/nodetest"
)

// fakeHost is a host of which a test sets the signals. Its images take images bytes of the disk.
type fakeHost struct {
	mu        sync.Mutex
	observed  eviction.Observations
	err       error // of Observe
	usage     map[types.UID]eviction.Usage
	images    int64
	now       time.Time
	collected int // calls of CollectImages that may keep images
}

// set changes the host.
func (h *fakeHost) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *fakeHost) Observe() (eviction.Observations, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := eviction.Observations{}
	for s, seen := range h.observed {
		if s == eviction.NodeFSAvailable {
			seen.Available -= h.images
		}
		o[s] = seen
	}
	return o, h.err
}

func (h *fakeHost) Usage(context.Context, corev1.ResourceName) map[types.UID]eviction.Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usage
}

func (h *fakeHost) CollectImages(all bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if all {
		h.images = 0
	} else {
		h.collected++
	}
	return nil
}

func (h *fakeHost) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

const mi = 1 << 20

func (e *fakeEngine) Evict(_ context.Context, _, name, message string) (err error) {
	e.do(name, func() {
		if err = e.evictErr; err != nil {
			return
		}
		l := e.pods[name]
		l.Alive, l.Ended = false, true
		l.Pod.Status.Phase, l.Pod.Status.Reason, l.Pod.Status.Message = corev1.PodFailed, "Evicted", message
		l.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
		e.log = append(e.log, "evict "+name)
		e.evicted()
	})
	return err
}

// underPressure returns a bed whose agent has the kubelet's thresholds, and its host, which has enough of everything, and
// again when a pod has been evicted.
func underPressure(t *testing.T) (*bed, *fakeHost) {
	t.Helper()
	thresholds, err := eviction.ParseThresholds(eviction.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{now: time.Unix(1000, 0), observed: eviction.Observations{
		eviction.MemoryAvailable: {Available: 500 * mi, Capacity: 1000 * mi}, eviction.NodeFSAvailable: {Available: 500 * mi, Capacity: 1000 * mi},
	}}
	b := newBed(t)
	b.engine.evicted = func() {
		h.set(func() {
			for s, seen := range h.observed {
				h.observed[s] = eviction.Observation{Available: 500 * mi, Capacity: seen.Capacity}
			}
		})
	}
	b.host, b.pressure = h, &Pressure{Thresholds: thresholds, Now: h.clock}
	return b, h
}

// step has the agent look at the host once.
func (b *bed) step(t *testing.T) bool {
	t.Helper()
	if b.evictor == nil {
		b.evictor = newEvictor(b.agent, b.host)
	}
	return b.evictor.step(t.Context())
}

// look has the agent look at the host until the API server has a condition of the node.
func (b *bed) look(t *testing.T, kind corev1.NodeConditionType, want corev1.ConditionStatus) {
	t.Helper()
	b.step(t)
	b.waitCondition(t, kind, want)
}

// waitCondition waits until the API server has a condition of the node.
func (b *bed) waitCondition(t *testing.T, kind corev1.NodeConditionType, want corev1.ConditionStatus) {
	t.Helper()
	n := &corev1.Node{}
	waitFor(t, string(kind)+" is "+string(want), func() bool {
		return b.agent.Client.Get(t.Context(), nodePath("attic"), n) == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind && c.Status == want })
	})
}

// start starts a pod that may use much.
func (b *bed) start(t *testing.T, name, uid string, change func(*corev1.Pod)) {
	t.Helper()
	p := nodetest.NewPod(name, uid)
	change(p)
	b.PutPod(t, p)
	b.waitRunning(t, name)
}

func requestMemory(amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
	}
}

// TestMemoryPressure: the pod that exceeds its request most is evicted, with the kubelet's status, and no pod without
// requests is admitted. Five minutes after the pressure has gone the condition goes, too.
func TestMemoryPressure(t *testing.T) {
	b, h := underPressure(t)
	h.usage = map[types.UID]eviction.Usage{uid1: {Total: 300 * mi, Containers: map[string]int64{"main": 300 * mi}}, uid2: {Total: 200 * mi}}
	b.run(t)
	b.start(t, "greedy", uid1, requestMemory("10Mi"))
	b.start(t, "modest", uid2, requestMemory("300Mi"))
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionFalse)
	h.set(func() {
		h.observed[eviction.MemoryAvailable] = eviction.Observation{Available: 50 * mi, Capacity: 1000 * mi}
	})
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionTrue)
	const message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 300Mi, request is 10Mi, has larger consumption of memory. "
	waitFor(t, "the greedy pod has failed", func() bool { return b.Pod("greedy").Status.Phase == corev1.PodFailed })
	st := b.Pod("greedy").Status
	if st.Reason != "Evicted" || st.Message != message {
		t.Errorf("reason %s, message %s", st.Reason, st.Message)
	}
	if !slices.ContainsFunc(st.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "TerminationByKubelet" && c.Message == message
	}) {
		t.Errorf("conditions %+v", st.Conditions)
	}
	if got := b.engine.calls(); strings.Count(got, "evict") != 1 || !strings.Contains(got, "evict greedy") {
		t.Errorf("the agent did %s", got)
	}
	waitFor(t, "an event of the node", func() bool {
		return slices.Contains(b.Events("attic"), "EvictionThresholdMet: Attempting to reclaim memory")
	})
	h.set(func() { h.now = h.now.Add(eviction.TransitionPeriod - time.Second) })
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionTrue)
	const uid3, uid4 = "00000000-0000-0000-0000-000000000003", "00000000-0000-0000-0000-000000000004"
	b.start(t, "requesting", uid3, requestMemory("1Mi"))
	b.PutPod(t, nodetest.NewPod("effortless", uid4))
	waitFor(t, "the pod without requests is rejected", func() bool { return b.Pod("effortless").Status.Phase == corev1.PodFailed })
	if st := b.Pod("effortless").Status; st.Reason != "Evicted" || st.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
		t.Errorf("reason %s, message %s", st.Reason, st.Message)
	}
	h.set(func() { h.now = h.now.Add(time.Second) })
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionFalse)
	if got := b.engine.calls(); strings.Count(got, "evict") != 1 {
		t.Errorf("the agent did %s", got)
	}
}

// TestDiskPressure: images and pods that have ended are removed before a pod is evicted. Critical pods stay.
func TestDiskPressure(t *testing.T) {
	b, h := underPressure(t)
	b.run(t)
	b.start(t, "ended", uid1, func(*corev1.Pod) {})
	b.engine.Stop(t.Context(), "default", "ended", 0)
	waitFor(t, "the pod has ended", func() bool { return hasEnded(&b.Pod("ended").Status) })
	b.start(t, "critical", uid2, func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_001_000)) })
	h.set(func() { h.images = 450 * mi })
	b.look(t, corev1.NodeDiskPressure, corev1.ConditionTrue)
	if got := b.engine.calls(); !strings.HasSuffix(got, "remove ended") || strings.Contains(got, "evict") {
		t.Errorf("the agent did %s", got)
	}
	h.set(func() {
		if h.images != 0 {
			t.Errorf("images of %d bytes are left", h.images)
		}
	})
	if st := b.Pod("ended").Status; !hasEnded(&st) {
		t.Errorf("its status became %+v", st)
	}
	h.set(func() {
		h.observed[eviction.NodeFSAvailable] = eviction.Observation{Available: 50 * mi, Capacity: 1000 * mi}
	})
	b.look(t, corev1.NodeDiskPressure, corev1.ConditionTrue)
	if got := b.engine.calls(); strings.Contains(got, "evict") {
		t.Errorf("the agent did %s", got)
	}
}

// TestDiskIsFreedLater: the files of an evicted pod are on the disk until it is removed. No second pod is evicted before the
// API server has the first one's status, however long it takes, nor within 30 seconds while the removal fails.
func TestDiskIsFreedLater(t *testing.T) {
	for name, tc := range map[string]struct {
		hold   func(b *bed) (release func())
		known  bool          // the API server gets the status at once
		passes time.Duration // on the host's clock
		want   string        // evictions and removals until release
	}{
		"the status is late": {func(b *bed) func() {
			b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/status") && strings.Contains(r.URL.Path, "/pods/") {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			return func() { b.SetHook(nil) }
		}, false, time.Hour, "evict greedy"},
		"the API server is away": {func(b *bed) func() {
			b.SetAway(true)
			return func() { b.SetAway(false) }
		}, false, time.Hour, "evict greedy"},
		"the removal is late": {failRemovals, true, cleanupTimeout - time.Second, "evict greedy"},
		"the removal fails":   {failRemovals, true, cleanupTimeout, "evict greedy, evict modest"},
	} {
		t.Run(name, func(t *testing.T) {
			b, h := underPressure(t)
			h.usage = map[types.UID]eviction.Usage{uid1: {Total: 300 * mi}, uid2: {Total: 200 * mi}}
			b.engine.evicted = func() {}
			frees := func(string) error {
				h.set(func() {
					h.observed[eviction.NodeFSAvailable] = eviction.Observation{Available: 500 * mi, Capacity: 1000 * mi}
				})
				return nil
			}
			b.engine.removed = frees
			b.run(t)
			b.start(t, "greedy", uid1, func(*corev1.Pod) {})
			b.start(t, "modest", uid2, func(*corev1.Pod) {})
			release := tc.hold(b)
			h.set(func() {
				h.observed[eviction.NodeFSAvailable] = eviction.Observation{Available: 50 * mi, Capacity: 1000 * mi}
			})
			if b.step(t) {
				t.Error("the next step is due at once")
			}
			known := func() bool {
				return hasEnded(&b.agent.Find("default", "greedy", uid1).Status)
			}
			if tc.known {
				waitFor(t, "the status is known", known)
			}
			b.step(t)
			h.set(func() { h.now = h.now.Add(tc.passes) })
			b.step(t)
			if got := b.engine.calls(); !strings.HasSuffix(got, "start modest, "+tc.want) {
				t.Errorf("the agent did %s", got)
			}
			b.engine.do("greedy", func() { b.engine.removed = frees })
			release()
			waitFor(t, "the status is known", known)
			b.step(t)
			if got := b.engine.calls(); !strings.Contains(got, "remove greedy") || strings.Count(got, "evict") != strings.Count(tc.want, "evict") {
				t.Errorf("the agent did %s", got)
			}
		})
	}
}

func failRemovals(b *bed) (release func()) {
	b.engine.do("", func() { b.engine.removed = func(string) error { return errors.New("it is busy") } })
	return func() {}
}

// TestImagesAreCollected: every five minutes, also without pressure.
func TestImagesAreCollected(t *testing.T) {
	b, h := underPressure(t)
	b.run(t)
	for i, passes := range []time.Duration{0, imageInterval - time.Second, time.Second, imageInterval} {
		h.set(func() { h.now = h.now.Add(passes) })
		b.step(t)
		h.set(func() {
			if want := []int{1, 1, 2, 3}[i]; h.collected != want {
				t.Errorf("step %d: collected %d times, want %d", i, h.collected, want)
			}
		})
	}
}

// TestAgentLooks: the agent looks at the host by itself.
func TestAgentLooks(t *testing.T) {
	b, h := underPressure(t)
	h.observed[eviction.MemoryAvailable] = eviction.Observation{Available: 50 * mi, Capacity: 1000 * mi}
	b.loop = true
	b.run(t)
	b.waitCondition(t, corev1.NodeMemoryPressure, corev1.ConditionTrue)
}

// TestEvictionFails: the error is printed, the pod stays a candidate, and no other one is evicted in its place.
func TestEvictionFails(t *testing.T) {
	b, h := underPressure(t)
	h.usage = map[types.UID]eviction.Usage{uid1: {Total: 300 * mi}, uid2: {Total: 200 * mi}}
	b.engine.evictErr = errors.New("it has not ended")
	b.run(t)
	b.start(t, "web", uid1, func(*corev1.Pod) {})
	b.start(t, "modest", uid2, func(*corev1.Pod) {})
	h.set(func() {
		h.observed[eviction.MemoryAvailable] = eviction.Observation{Available: 50 * mi, Capacity: 1000 * mi}
	})
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionTrue)
	if got := b.out.String(); !strings.Contains(got, "evict pod default/web: it has not ended") || strings.Contains(got, "modest") {
		t.Errorf("printed %s", got)
	}
	b.engine.do("web", func() { b.engine.evictErr = nil })
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionTrue)
	waitFor(t, "the pod has failed", func() bool { return b.Pod("web").Status.Phase == corev1.PodFailed })
	if got := b.engine.calls(); strings.Contains(got, "evict modest") {
		t.Errorf("the agent did %s", got)
	}
}

// TestUnknownSignal: why a signal is not known is printed once, and again if it returns; its condition stays False.
func TestUnknownSignal(t *testing.T) {
	b, h := underPressure(t)
	h.err = errors.New("there is no /proc/meminfo")
	delete(h.observed, eviction.MemoryAvailable)
	b.run(t)
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionFalse)
	b.look(t, corev1.NodeMemoryPressure, corev1.ConditionFalse)
	if got := strings.Count(b.out.String(), "there is no /proc/meminfo"); got != 1 {
		t.Errorf("it was printed %d times", got)
	}
	for _, err := range []error{nil, h.err} {
		h.set(func() { h.err = err })
		b.step(t)
	}
	if got := strings.Count(b.out.String(), "there is no /proc/meminfo"); got != 2 {
		t.Errorf("it was printed %d times", got)
	}
}

// TestNodeAllocatable: what is reserved and the thresholds are not allocatable. The devices of a kind that is gone have the
// capacity 0; extended resources of others stay.
func TestNodeAllocatable(t *testing.T) {
	b, _ := underPressure(t)
	b.pressure.Reserved = []corev1.ResourceList{{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}}
	b.devices = map[corev1.ResourceName]int64{"example.com/card": 2, "example.com/disk": 1}
	end := b.run(t)
	n := &corev1.Node{}
	read := func() bool {
		return b.agent.Node.object() != nil && b.agent.Client.Get(t.Context(), nodePath("attic"), n) == nil
	}
	check := func(list corev1.ResourceList, want map[corev1.ResourceName]string) {
		t.Helper()
		for name, amount := range want {
			if q := list[name]; q.Cmp(resource.MustParse(amount)) != 0 {
				t.Errorf("%s is %v, want %s", name, &q, amount)
			}
		}
	}
	waitFor(t, "the node is registered", read)
	check(n.Status.Capacity, map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Ti", "example.com/card": "2", "example.com/disk": "1"})
	check(n.Status.Allocatable, map[corev1.ResourceName]string{"cpu": "3500m", "memory": "7068Mi", "pods": "110", "example.com/card": "2", "example.com/disk": "1"})
	if q := n.Status.Allocatable[corev1.ResourceEphemeralStorage]; q.Value() != 1<<40-(1<<40)/10 {
		t.Errorf("ephemeral-storage is %v", &q)
	}
	end()
	n.Status.Capacity["other.example/card"] = resource.MustParse("3")
	b.Put(t, nodePath("attic"), n)
	b.devices = map[corev1.ResourceName]int64{"example.com/card": 1}
	b.run(t)
	waitFor(t, "the capacity changes", func() bool { q := n.Status.Capacity["example.com/card"]; return read() && q.Value() == 1 })
	check(n.Status.Capacity, map[corev1.ResourceName]string{"example.com/card": "1", "example.com/disk": "0", "other.example/card": "3"})
	check(n.Status.Allocatable, map[corev1.ResourceName]string{"example.com/card": "1", "example.com/disk": "0", "other.example/card": "3"})
}

// TestCheckReserved: more than the host has cannot be reserved.
func TestCheckReserved(t *testing.T) {
	r := &Registration{Facts: func() (*Facts, error) { return &Facts{MilliCPU: 2000, Memory: 1 << 30, Storage: 1 << 30}, nil }}
	for memory, want := range map[string]string{"1Gi": "", "1025Mi": "--system-reserved, --kube-reserved and --eviction-hard keep more memory than the 1Gi of this host"} {
		r.Pressure = &Pressure{Reserved: []corev1.ResourceList{{corev1.ResourceMemory: resource.MustParse(memory)}}}
		got := ""
		if err := r.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", memory, got, want)
		}
		if left := r.Allocatable(); left.Memory().Sign() != 0 || left.Cpu().Value() != 2 {
			t.Errorf("%s: pods may use %v", memory, left)
		}
	}
}
