package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// UpMeasured starts a pod of ThreeContainers with a directory that looks like its cgroup, without some of the
// files, and returns the directory. The pod has 40 MiB of memory, and its containers app and log-shipper 10
// and 30.
func (h *Host) UpMeasured(without ...string) (cgroup string) {
	h.T.Helper()
	s := h.UpDetached(ThreeContainers, nil)
	cgroup = h.T.TempDir()
	h.writeCgroup(cgroup, 40, without)
	h.writeCgroup(cgroup+"/app", 10, without)
	h.writeCgroup(cgroup+"/log-shipper", 30, without)
	st := Status(pod.Running, RunningContainer("app"), RunningContainer("log-shipper"))
	st.InitContainers = []pod.ContainerStatus{TerminatedContainer("prepare", 0, "Completed", "")}
	for i := range st.Containers {
		st.Containers[i].Image = "busybox:1"
	}
	st.Cgroup = cgroup
	s.Publish(st)
	return cgroup
}

// writeCgroup makes a directory that looks like a cgroup; the memory is in MiB.
func (h *Host) writeCgroup(dir string, memory int, without []string) {
	h.T.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.T.Fatal(err)
	}
	for name, text := range map[string]string{
		"cpu.stat": "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\nnr_periods 200\nnr_throttled 50\nthrottled_usec 2500000\n",
		"cpu.max":  "50000 100000\n", "cpu.pressure": "some avg10=1.50 avg60=0 avg300=0 total=1\n",
		"memory.current": fmt.Sprintln((memory + 1) << 20), "memory.stat": "anon 2097152\nfile 3145728\nfile_mapped 4096\nactive_file 2048\ninactive_file 1048576\nkernel 65536\npgfault 70\npgmajfault 7\n", "memory.peak": "33554432\n",
		"memory.max": "67108864\n", "memory.pressure": "some avg10=0.00 avg60=0 avg300=0 total=1\n", "memory.events": "oom 1\noom_kill 1\n", "memory.swap.current": "8192\n",
		"pids.current": "3\n", "pids.max": "2048\n", "io.stat": "8:0 rbytes=512 wbytes=3145728 rios=1 wios=6\n", "io.pressure": "some avg10=0.25 avg60=0 avg300=0 total=1\n",
	} {
		if slices.Contains(without, name) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			h.T.Fatal(err)
		}
	}
}
