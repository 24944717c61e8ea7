package lifecycle

import (
	"fmt"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// benchPod returns a pod of 20 containers (4 init containers, 2 sidecars, 14 apps). All apps run,
// one container waits for its back-off.
func benchPod(b *testing.B) *world {
	w := &world{}
	words := []string{"pod"}
	for i := range 4 {
		words = append(words, fmt.Sprintf("init=init-%d", i))
	}
	words = append(words, "sidecar=log", "sidecar=mesh")
	for i := range 14 {
		words = append(words, fmt.Sprintf("app=app-%d", i))
	}
	if err := w.step(words); err != nil {
		b.Fatal(err)
	}
	w.settle()
	end := func(name, code string) {
		if err := w.step([]string{"exit", name, code}); err != nil {
			b.Fatal(err)
		}
		w.settle()
	}
	for i := range 4 {
		end(fmt.Sprintf("init-%d", i), "0")
	}
	end("app-3", "1")
	end("app-3", "1")
	if s := Status(&w.plan, &w.seen, w.now()); s.Phase != pod.Running || w.last.Wake == 0 {
		b.Fatalf("the pod is not as it should be: %+v", s)
	}
	return w
}

func BenchmarkDecide(b *testing.B) {
	w := benchPod(b)
	now := w.now()
	b.ReportAllocs()
	for b.Loop() {
		Decide(&w.plan, &w.seen, now)
	}
}

func BenchmarkDecideStart(b *testing.B) {
	w := benchPod(b)
	observed := Observed{Sandbox: SandboxUp}
	plan := w.plan
	plan.InitContainers = nil
	now := w.now()
	b.ReportAllocs()
	for b.Loop() {
		Decide(&plan, &observed, now)
	}
}

func BenchmarkApply(b *testing.B) {
	w := benchPod(b)
	e := Event{At: w.now(), Kind: Started, Container: "app-1"}
	b.ReportAllocs()
	for b.Loop() {
		w.seen.Apply(&w.plan, e)
	}
}

func BenchmarkStatus(b *testing.B) {
	w := benchPod(b)
	now := w.now()
	b.ReportAllocs()
	for b.Loop() {
		Status(&w.plan, &w.seen, now)
	}
}
