package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// ProbeCount has how often a probe of a container has succeeded and failed.
type ProbeCount struct {
	Container, Kind    string
	Successful, Failed uint64
}

// probeKinds are the kinds of a container's probes, in the order of the file.
var probeKinds = []string{"startup", "liveness", "readiness"}

// The file has two counters, of successes and failures, for each kind of probe of each container that may have
// probes.
const (
	countersOfProbe = 2
	counterSize     = 8
)

// probeCountsFile returns the file, in the pod's runtime directory, that counts the results of the pod's probes. The
// supervisor writes it, and so do the probers while the supervisor hibernates. A pod without results has none.
func (p Pod) probeCountsFile() string { return filepath.Join(p.runtime, "probe-counts") }

// probedContainers returns the containers that may have probes. An update of a pod changes neither their number nor
// their order.
func probedContainers(plan *pod.Plan) []pod.Container {
	return slices.Concat(plan.InitContainers, plan.Containers)
}

// ProbeCounts returns the counts of all kinds of probes of all containers that may have probes.
func (p Pod) ProbeCounts(plan *pod.Plan) ([]ProbeCount, error) {
	b, err := os.ReadFile(p.probeCountsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the counts of the probes of pod %s: %w", p.Name, err)
	}
	var all []ProbeCount
	for _, c := range probedContainers(plan) {
		for _, kind := range probeKinds {
			n := ProbeCount{Container: c.Name, Kind: kind}
			if len(b) < countersOfProbe*counterSize {
				return nil, fmt.Errorf("read the counts of the probes of pod %s: the file is too short", p.Name)
			}
			n.Successful, n.Failed = binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[counterSize:])
			all, b = append(all, n), b[countersOfProbe*counterSize:]
		}
	}
	return all, nil
}

// OpenProbeCounters opens the file for CountProbe, and makes it if there is none.
func (p Pod) OpenProbeCounters(plan *pod.Plan) (*os.File, error) {
	f, err := os.OpenFile(p.probeCountsFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the counts of the probes: %w", err)
	}
	size := int64(len(probedContainers(plan)) * len(probeKinds) * countersOfProbe * counterSize)
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil && end < size {
		_, err = f.Write(make([]byte, size-end)) // not Truncate: a prober maps the file, so its memory must be there
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("make the counts of the probes: %w", err)
	}
	return f, nil
}

// ProbeCounter returns the number, in the file, of the counter of a probe's successes. The counter of its failures follows.
func ProbeCounter(plan *pod.Plan, container, kind string) int {
	i := slices.IndexFunc(probedContainers(plan), func(c pod.Container) bool { return c.Name == container })
	return (i*len(probeKinds) + slices.Index(probeKinds, kind)) * countersOfProbe
}

// CountProbe adds 1 to a counter of the file of OpenProbeCounters. Only one process and goroutine does so at a time for
// the same probe.
func CountProbe(counters *os.File, counter int) error {
	var b [counterSize]byte
	offset := int64(counter) * counterSize
	_, err := counters.ReadAt(b[:], offset)
	if err == nil {
		binary.NativeEndian.PutUint64(b[:], binary.NativeEndian.Uint64(b[:])+1)
		_, err = counters.WriteAt(b[:], offset)
	}
	if err != nil {
		return fmt.Errorf("count the result of a probe: %w", err)
	}
	return nil
}
