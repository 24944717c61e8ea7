package runner

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
)

// sweep kills what a supervisor that died has left half done: starts of containers,
// commands of exec and of probes. They are the keeper's children now, and none of those
// that are known. It returns when there are no such processes any more.
//
// In the host's PID namespace the orphans of containers are the keeper's children, too: the
// processes in the mount namespaces of spared are left alone, commands among them.
func sweep(known map[process]bool, spared map[string]bool) {
	killEach(func(pid int) bool { return killOrphan(pid, known, spared) })
}

// killOrphan kills a child of the keeper that nobody knows and waits for its end.
func killOrphan(pid int, known map[process]bool, spared map[string]bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	s, ok := stat(pid)
	if !ok || s.parent != stage.KeeperPID() || s.state == 'Z' || known[s.process] {
		return false
	}
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && spared[ns] {
		return false
	}
	return killAndWait(fd)
}
