package runner

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// A supervisor needs neither a thread nor a buffer for each container that it waits for: fifty cost little
// more than one.
func TestManyContainersCostLittle(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "0")
	l := layer(t)
	// With a thread for each container it has more than 60. It never ends a thread, so on a busy machine, where more system
	// calls block at the same time, it keeps more than on an idle one: up to 47 were seen.
	const many, threads, memory = 50, 56, 16 << 10 // kB: about 12 MB were measured at rest
	var list []pod.Container
	for i := range many {
		list = append(list, shell(l, fmt.Sprintf("c%d", i), "exec sleep 1000"))
	}
	w := startWhole(t, newPlan(nil, list))
	w.until(running)
	supervisor, _ := w.processes()
	var found map[string]int
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if found = statusOfProcess(t, supervisor); found["Threads"] < threads && found["RssAnon"] < memory {
			t.Logf("%d containers cost %d kB and %d threads", many, found["RssAnon"], found["Threads"])
			return
		}
	}
	t.Errorf("%d containers cost %d kB and %d threads", many, found["RssAnon"], found["Threads"])
}

// statusOfProcess returns the numbers in /proc/PID/status.
func statusOfProcess(t *testing.T, pid int) map[string]int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 {
			found[strings.TrimSuffix(f[0], ":")], _ = strconv.Atoi(f[1])
		}
	}
	return found
}
