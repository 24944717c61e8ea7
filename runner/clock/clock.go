package clock

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
)

// Now reads CLOCK_BOOTTIME, which continues during a suspend and never jumps, and the wall clock.
func Now() lifecycle.Now {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("runner: CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
	}
	return lifecycle.Now{Boot: time.Duration(ts.Nano()), Wall: time.Now()}
}

// Boot returns the CLOCK_BOOTTIME part of Now.
func Boot() time.Duration { return Now().Boot }
