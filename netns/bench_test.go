package netns

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// BenchmarkStart is what a user's first pod waits for, step by step: the quickest of all rounds.
func BenchmarkStart(b *testing.B) {
	took := map[string][]time.Duration{}
	for b.Loop() {
		b.StopTimer()
		ns, router := testenv.Namespaces(b, unix.CLONE_NEWNET)+"/ns/net", OpenRouter(testenv.Namespaces(b, unix.CLONE_NEWNET)+"/ns/net")
		b.StartTimer()
		var pool Pool
		var wires Wires
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"loopback", func() error { return LoopbackUp(ns) }},
			{"prepare", func() (err error) { pool, err = router.Prepare(); return err }},
			{"attach", func() error { return router.Attach(ns, pool, 1) }},
			{"wire", func() (err error) { wires, err = router.Wire(pool, 1); return err }},
		} {
			at := time.Now()
			if err := step.do(); err != nil {
				b.Fatal(err)
			}
			took[step.name] = append(took[step.name], time.Since(at))
		}
		wires.Close()
	}
	for step, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[0].Microseconds()), step+"-min-us")
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), step+"-med-us")
	}
}
func BenchmarkLoopbackUp(b *testing.B) {
	ns := testenv.Namespaces(b, unix.CLONE_NEWNET) + "/ns/net"
	for b.Loop() {
		if err := LoopbackUp(ns); err != nil {
			b.Fatal(err)
		}
	}
}
