package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leakTimeout bounds the wait until ended resources are gone: a thread after its goroutine, a killed
// process.
const leakTimeout = 30 * time.Second

// NoLeaks fails t if, once it and its cleanups have run, this process has mounts, descriptors,
// child processes, goroutines or threads in foreign namespaces that it did not have when NoLeaks
// was called. Call it first; not in parallel tests.
func NoLeaks(t testing.TB) {
	t.Helper()
	noLeaks(t, leakTimeout)
}

func noLeaks(t testing.TB, within time.Duration) {
	t.Helper()
	before, err := snapshot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, leak := range leaksWithin(before, within) {
			t.Errorf("leaked %s", leak)
		}
	})
}

// state counts what a process holds, by a descriptive text.
type state struct {
	resources  map[string]int
	goroutines int
}

// pidfdDescriptor is Go's descriptor of a process. libcontainer leaves the descriptors of processes that it
// could not wait for to the garbage collector.
const pidfdDescriptor = "descriptor of anon_inode:[pidfd]"

func leaksSince(before state) []string { return leaksWithin(before, leakTimeout) }

func leaksWithin(before state, within time.Duration) []string {
	var leaks []string
	for deadline := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		now, err := snapshot()
		if err != nil {
			return []string{err.Error()}
		}
		if leaks = compare(before, now); len(leaks) == 0 || time.Now().After(deadline) {
			return leaks
		}
		if now.resources[pidfdDescriptor] > before.resources[pidfdDescriptor] {
			runtime.GC()
		}
	}
}

// fifoOpener is a goroutine that libcontainer leaves behind, with a descriptor of the file, if a
// container's process has started and ended before libcontainer checked (awaitFifoOpen).
const (
	fifoOpener = "libcontainer.awaitFifoOpen.func1("
	fifoName   = "/exec.fifo (deleted)"
)

func compare(before, now state) []string {
	var leaks []string
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	excused := strings.Count(string(stacks), fifoOpener)
	for _, resource := range slices.Sorted(maps.Keys(now.resources)) {
		if n := now.resources[resource] - before.resources[resource]; n > 0 && !(excused > 0 && strings.HasSuffix(resource, fifoName)) {
			leaks = append(leaks, fmt.Sprintf("%s (%d)", resource, n))
		}
	}
	if now.goroutines-excused > before.goroutines {
		leaks = append(leaks, fmt.Sprintf("goroutines: %d before, %d now\n%s", before.goroutines, now.goroutines, stacks))
	}
	return leaks
}

func snapshot() (state, error) {
	s := state{resources: map[string]int{}, goroutines: runtime.NumGoroutine()}
	for _, part := range []func(map[string]int) error{mounts, descriptors, children, namespaces} {
		if err := part(s.resources); err != nil {
			return state{}, fmt.Errorf("look for leaks: %w", err)
		}
	}
	return s, nil
}

func mounts(resources map[string]int) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 5 {
			resources["mount "+f[4]]++
		}
	}
	return nil
}

func descriptors(resources map[string]int) error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // the descriptor of this listing
		}
		if err != nil {
			return err
		}
		switch target {
		case "anon_inode:[eventpoll]", "anon_inode:[eventfd]":
			continue // Go's poller, which is made when first needed
		}
		resources["descriptor of "+target]++
	}
	return nil
}

func children(resources map[string]int) error {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return err
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(b)) {
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			resources[fmt.Sprintf("process %s %s", pid, strings.TrimSpace(string(name)))]++
		}
	}
	return nil
}

// namespaces counts every namespace that some thread is in and the main thread is not.
func namespaces(resources map[string]int) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	main := strconv.Itoa(os.Getpid())
	for _, kind := range []string{"net", "ipc", "uts", "mnt"} {
		home, err := os.Readlink("/proc/self/task/" + main + "/ns/" + kind)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			ns, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/" + kind)
			if err == nil && ns != home {
				resources["thread in "+ns]++
			}
		}
	}
	return nil
}
