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

// Bound limits the memory of this process and, unless it reads from a user, its time. It ends the process when nobody reads
// its output any more: the command that started it was killed.
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
