package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// untilEnded returns when a child has ended, and leaves it to be reaped.
func untilEnded(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// reap waits for the end of a child that this program has not started: the
// supervisor's process may have run another before it.
func reap(pid int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == nil {
			return ws, nil
		}
		if err != unix.EINTR {
			return 0, fmt.Errorf("wait for process %d: %w", pid, err)
		}
	}
}
