package probe

import (
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// BenchmarkHTTP measures the processor time of a plain HTTP probe and its server.
func BenchmarkHTTP(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	h := &pod.Handler{HTTP: &pod.HTTPGet{Port: s.Listener.Addr().(*net.TCPAddr).Port}}
	p := local()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	for b.Loop() {
		if outcome, message := p.Run(b.Context(), h, time.Minute); outcome != lifecycle.Success {
			b.Fatal(message)
		}
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}
