// Package timerslack makes the Go runtime's monitor thread wake less often. While a program is busy that thread sleeps
// for 20 microseconds at a time, and wakes other threads in place of those that are blocked in system calls. When a
// hundred pods start together, that takes a sixth of all processor time.
package timerslack

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// wide is the timer slack of the monitor thread, in nanoseconds: its sleeps may take so much longer. Every thread
// with it would be slower, because the runtime also sleeps for microseconds before it steals work.
const wide = 4_000_000

var (
	ofMain  = ofThread() // packages are initialized on the main thread
	widened bool
)

// ofThread returns the timer slack of the calling thread, in nanoseconds; 0, which leaves a slack as it is, if it cannot
// be read.
func ofThread() int {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return slack
}

// OfMain returns the timer slack of the main thread, in nanoseconds. Other threads may have another one, if the monitor
// thread has made them: a thread and a process inherit it from the thread that makes them.
func OfMain() int { return ofMain }

// WidenMonitor gives the monitor thread a wide timer slack, if the process may do that: it needs CAP_SYS_NICE, before
// Linux 5.7 in the host's user namespace. main calls it before it starts goroutines.
func WidenMonitor() {
	thread, err := monitorThread()
	if err != nil {
		return
	}
	widened = ofMain < wide && os.WriteFile("/proc/"+thread+"/timerslack_ns", []byte(strconv.Itoa(wide)), 0) == nil
}

// monitorThread returns the number of the monitor thread, the first that the runtime makes. The kernel lists threads
// in the order in which they were made.
func monitorThread() (string, error) {
	threads, err := os.Open("/proc/self/task")
	if err != nil {
		return "", err
	}
	defer threads.Close()
	names, err := threads.Readdirnames(2)
	if err != nil || len(names) < 2 {
		return "", os.ErrNotExist
	}
	return names[1], nil
}

// WithMain calls start, which makes a process, on a thread with the timer slack of OfMain. That takes longer.
func WithMain(start func() error) error {
	if !widened {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ofMain), 0, 0, 0)
	return start()
}
