package server

import (
	"os"
	"runtime/metrics"
	"time"

	"github.com/podrun/podrun/image/program"
	"github.com/podrun/podrun/internal/report"
)

const (
	// maxMemory is the maximum of Go's memory in the image program, in bytes. A pull takes some 20 MB.
	maxMemory      = 512 << 20
	memoryInterval = 20 * time.Millisecond
)

// watchMemory ends the program, with an error for each request, when it takes more than maxMemory. What podrun decodes
// is bounded before, but the library decodes an error of a registry of any size. A limit of the kernel would count the
// stacks of threads, which wait for locks and disks.
func (s *server) watchMemory() {
	for memoryInUse() <= maxMemory {
		time.Sleep(memoryInterval)
	}
	s.mu.Lock() // no request begins or ends any more
	for id := range s.cancels {
		s.send(program.Frame{ID: id, Done: true, Error: program.EncodeError(report.New(report.Failure, "the registry or the archive sends what no image has: do not trust it",
			"the image program takes more than %d MiB of memory, and was ended", maxMemory>>20))})
	}
	os.Exit(1)
}

func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
