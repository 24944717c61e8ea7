package filter

// #cgo CFLAGS: -Wall -Werror -O2
// #include "capture.h"
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
)

// capture makes this thread one that tells which filter it would load: capture.c.
func capture() error {
	runtime.LockOSThread()
	if errno := C.podrun_capture(); errno != 0 {
		return fmt.Errorf("catch the filter: %w", syscall.Errno(errno))
	}
	return nil
}
