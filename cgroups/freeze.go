package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
)

// Freeze makes the kernel stop or continue every process of the pod. It does not wait: see
// AwaitFrozen. Frozen processes can still be killed.
func (p *Pod) Freeze(frozen bool) error {
	value := "0"
	if frozen {
		value = "1"
	}
	return wrap(delegation.Write(p.Path(), "cgroup.freeze", value), "freeze cgroup %s", p.Path())
}

// AwaitFrozen returns when all processes of the pod are frozen, or with an error after limit: a
// process that waits for a disk or a file server cannot be frozen.
func (p *Pod) AwaitFrozen(limit time.Duration) error {
	f, err := os.Open(filepath.Join(p.Path(), "cgroup.events"))
	if err != nil {
		return fmt.Errorf("watch cgroup %s: %w", p.Path(), err)
	}
	defer f.Close()
	for end := time.Now().Add(limit); ; {
		var b [256]byte
		n, err := f.ReadAt(b[:], 0)
		if n == 0 && err != nil {
			return fmt.Errorf("watch cgroup %s: %w", p.Path(), err)
		}
		if n, err := keyed(string(b[:n]), "frozen"); err != nil || n == 1 {
			return wrap(err, "watch cgroup %s", p.Path())
		}
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("freeze cgroup %s: its processes do not stop", p.Path())
		}
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch cgroup %s: %w", p.Path(), err)
		}
	}
}

// FreezeRequested reports whether the last request to the kernel was to freeze the pod.
func (p *Pod) FreezeRequested() bool {
	b, err := os.ReadFile(filepath.Join(p.Path(), "cgroup.freeze"))
	return err == nil && len(b) > 0 && b[0] == '1'
}
