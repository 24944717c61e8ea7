package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// reapStillborn reaps what libcontainer leaves of a command whose container has ended before
// it was there: of nsexec's three processes it waits for the first only. A container's PID
// namespace does not end, nor does its first process, before all that were in it are reaped.
func (x *container) reapStillborn() {
	if first, ok := stat(x.PID); !ok || !first.ending || first.process != x.process {
		return // it runs, or nothing is left of it
	}
	ns, err := os.Readlink(pidNamespace(x.PID))
	own := err == nil && isFirst(x.PID)
	for _, pid := range childPIDs() {
		st, ok := stat(pid)
		if !ok || !st.ending || pid == x.PID {
			continue
		}
		switch st.name {
		case "runc:[1:CHILD]":
		case "runc:[2:INIT]": // elsewhere it may be a container's first process
			if of, err := os.Readlink(pidNamespace(pid)); !own || err != nil || of != ns {
				continue
			}
		default:
			continue
		}
		_, _ = unix.Wait4(pid, nil, 0, nil) // unless somebody has
	}
}

func pidNamespace(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }

// isFirst says whether a process is the first of its PID namespace.
func isFirst(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, numbers, _ := strings.Cut(string(b), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	return strings.HasSuffix(numbers, "\t1")
}

// childPIDs are this process's.
func childPIDs() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list) // none of a thread that has ended
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
