package runner

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/lifecycle"
)

// killMountNamespace kills what is left of a container in a shared PID namespace:
// every process with its mount namespace, until there is none. In a PID namespace
// of its own the kernel does that.
func killMountNamespace(mntns string) {
	if mntns == "" {
		return
	}
	killEach(func(pid int) bool { return killMember(pid, mntns) })
}

// killMember kills pid and waits for its end, if mntns is its mount namespace.
// The descriptor is opened first: the number may be another process's a moment later.
func killMember(pid int, mntns string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil || ns != mntns {
		return false
	}
	return killAndWait(fd)
}

// guard tells of the end of the shared PID namespace, which takes every container
// with it and lets none be started: of its first process, that is.
func (e *engine) guard(s *sandbox) {
	if s.pause.PID == 0 {
		return
	}
	go func() {
		if _, err := e.estate.ends.wait(s.pause); err != nil {
			return // it was taken away
		}
		e.tellLost(s)
	}()
}

func (e *engine) tellLost(s *sandbox) {
	e.mu.Lock()
	lost := e.sandbox == s
	e.mu.Unlock()
	if lost {
		e.emit(lifecycle.Event{Kind: lifecycle.SandboxLost, Attempt: s.attempt, Message: "the first process of the shared PID namespace has ended"})
	}
}

// checkGuard is for when a container has ended, or cannot be started: whether that is the
// sandbox's end has to be known before. The kernel ends a namespace's first process last.
func (e *engine) checkGuard(s *sandbox) {
	if s.pause.PID == 0 {
		return
	}
	if st, ok := stat(s.pause.PID); !ok || st.process != s.pause || st.ending {
		e.tellLost(s)
	}
}
