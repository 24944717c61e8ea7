package runner

import (
	"context"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/container"
)

// BenchmarkStart measures the time from the start action of a container until its program runs: without and
// with preparation. The processor time covers everything from the start action to the container's exit.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	layer := b.TempDir()
	if err := testenv.BusyboxRootfs(layer); err != nil {
		b.Fatal(err)
	}
	c := shell(layer, "c", "")
	c.Args = []string{"/bin/true"}
	plan := newPlan(nil, []pod.Container{c})
	place := store.Dirs{Data: dir + "/data", Runtime: dir + "/run"}.Pod("default", "p")
	if err := place.Create(plan, []byte("{}")); err != nil {
		b.Fatal(err)
	}
	e := testEngine(plan, place)
	s := e.newSandbox(plan, 0)
	if err := s.Create(func() {}); err != nil {
		b.Fatal(err)
	}
	defer s.Remove()
	attempt := 0
	run := func(b *testing.B, early bool) {
		least, all, cpu := time.Hour, time.Duration(0), time.Duration(0)
		for b.Loop() {
			attempt++
			x := container.New(s, &plan.Containers[0], attempt)
			x.Prepared = early
			used := usage()
			from := time.Now()
			if err := x.Create(context.Background(), s); err != nil {
				b.Fatal(err)
			}
			if early {
				from = time.Now()
			}
			if err := x.Start(s); err != nil {
				b.Fatal(err)
			}
			took := time.Since(from)
			least, all = min(least, took), all+took
			if _, err := procfs.WaitNoReap(x.PID); err != nil {
				b.Fatal(err)
			}
			for {
				if _, err := unix.Wait4(x.PID, nil, 0, nil); err != unix.EINTR {
					break
				}
			}
			x.Finish(s)
			cpu += usage() - used
			if err := x.Cleanup.Undo(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(least.Seconds()*1000, "ms-least")
		b.ReportMetric(all.Seconds()*1000/float64(b.N), "ms-mean")
		b.ReportMetric(cpu.Seconds()*1000/float64(b.N), "ms-cpu")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("cold", func(b *testing.B) { run(b, false) })
	b.Run("early", func(b *testing.B) { run(b, true) })
}

func usage() (all time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		_ = syscall.Getrusage(who, &u)
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}
