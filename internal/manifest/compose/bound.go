package compose

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxTime   = time.Minute
	maxMemory = 1 << 30 // with the address space of threads
)

// Bound limits the memory of this process and, unless it reads what a user types, its time. It ends the process when its
// output has no reader: the command that started it was killed.
func Bound(withTime bool) {
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxMemory, Max: maxMemory}); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: cannot limit the memory of the conversion:", err)
		os.Exit(1)
	}
	if withTime {
		time.AfterFunc(maxTime, func() {
			fmt.Fprintln(os.Stderr, "podrun: the conversion took longer than", maxTime)
			os.Exit(1)
		})
	}
	go func() {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: 1}}, -1) // reports only that the other end is closed
			if n > 0 {
				os.Exit(1)
			}
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
}

// hardLimits returns the user's hard limits that compose files often exceed, by docker's names. Root of the host has
// none.
func hardLimits() func(name string) (n uint64, ok bool) {
	most := map[string]uint64{}
	for name, kind := range map[string]int{"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "rtprio": unix.RLIMIT_RTPRIO, "stack": unix.RLIMIT_STACK} {
		var l unix.Rlimit
		if os.Geteuid() != 0 && unix.Getrlimit(kind, &l) == nil && l.Max != unix.RLIM_INFINITY {
			most[name] = l.Max
		}
	}
	return func(name string) (uint64, bool) { n, ok := most[name]; return n, ok }
}
