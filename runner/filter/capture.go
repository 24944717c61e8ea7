package filter

// #cgo CFLAGS: -Wall -Werror -O2
// #include "capture.h"
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
)

// capture puts this thread into a state in which it prints a filter instead of loading it: see capture.c.
func capture() error {
	runtime.LockOSThread()
	if errno := C.podrun_capture(); errno != 0 {
		return fmt.Errorf("catch the filter: %w", syscall.Errno(errno))
	}
	return nil
}
