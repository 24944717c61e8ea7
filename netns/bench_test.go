package netns

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// BenchmarkStart measures the network setup of a user's first pod step by step: the minimum of all
// rounds.
func BenchmarkStart(b *testing.B) {
	took := map[string][]time.Duration{}
	for b.Loop() {
		b.StopTimer()
		ns, r := testenv.NewNamespaces(b, unix.CLONE_NEWNET)+"/ns/net", router.Open(testenv.NewNamespaces(b, unix.CLONE_NEWNET)+"/ns/net")
		b.StartTimer()
		var pool ipam.Pool
		var traffic router.TrafficFDs
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"loopback", func() error { return LoopbackUp(ns) }},
			{"prepare", func() (err error) { pool, err = r.Prepare(); return err }},
			{"attach", func() error { return r.Attach(ns, pool, 1) }},
			{"wire", func() (err error) { traffic, err = r.OpenTraffic(pool, 1); return err }},
		} {
			moment := time.Now()
			if err := step.do(); err != nil {
				b.Fatal(err)
			}
			took[step.name] = append(took[step.name], time.Since(moment))
		}
		traffic.Close()
	}
	for step, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[0].Microseconds()), step+"-min-us")
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), step+"-med-us")
	}
}
func BenchmarkLoopbackUp(b *testing.B) {
	ns := testenv.NewNamespaces(b, unix.CLONE_NEWNET) + "/ns/net"
	for b.Loop() {
		if err := LoopbackUp(ns); err != nil {
			b.Fatal(err)
		}
	}
}
