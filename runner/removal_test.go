package runner

import (
	"os"
	"sync"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// The next container does not wait until what the ended one leaves is removed; the pod's
// end does.
func TestNextContainerDoesNotWaitForRemoval(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	one, two := shell(l, "one", "cat /v/one"), shell(l, "two", "cat /v/two")
	plan := withFifos(t, newPlan([]pod.Container{one, two}, []pod.Container{shell(l, "app", "exit 0")}), "one", "two")
	p := start(t, plan)
	w := wholePod{t: t, place: p.place}
	p.until("at its first init container", func(st pod.Status) bool { return st.InitContainers[1].State.Running != nil })
	removing, held := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(held) })
	defer goOn()
	p.engine.mu.Lock()
	first := p.engine.runs["one"].container
	first.cleanup.Push("take long", func() error {
		close(removing)
		<-held
		return nil
	})
	p.engine.mu.Unlock()
	w.release("one")
	<-removing
	p.until("at its second init container", func(st pod.Status) bool { return st.InitContainers[2].State.Running != nil })
	if _, err := os.Stat(first.rootfs(p.engine.sandbox)); err != nil {
		t.Error("it is removed already:", err)
	}
	// So would a supervisor find it that follows one which is killed now.
	if x := remnant(p.engine.sandbox, &one, 0); x.ct == nil {
		t.Error("what libcontainer knows of it, its cgroup above all, would be left")
	}
	w.release("two")
	p.until("at its app", func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil })
	goOn()
	p.ended()
	if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}
