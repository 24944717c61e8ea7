package host

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// earliestTime is before any release of podrun: a clock with an earlier time is not set. Boards
// without a battery start in 1970, or when their image was made.
func earliestTime() time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock checks whether the time is plausible. With a wrong time no registry's certificate is valid;
// back-off and deadlines do not depend on it.
func (v prober) clock() Finding {
	floor, what := earliestTime(), ""
	if v.Built.After(floor) {
		floor, what = v.Built, ", when this podrun was built"
	}
	now := v.now.UTC().Format("2006-01-02 15:04 MST")
	ntp := "as root: timedatectl set-ntp true (Debian: apt-get install systemd-timesyncd)"
	if !v.systemd() {
		ntp = "start a service that sets the clock (Debian: apt-get install chrony)"
	}
	switch {
	case v.now.Before(floor):
		return warningFinding(fmt.Sprintf("the clock is not set: it shows %s, which is before %s%s; registries' certificates will not be valid", now, floor.UTC().Format("2006-01-02"), what), ntp+"; until then as root: date -s '2030-01-31 12:00' with the right time")
	case !v.hasRTC() && !v.synced():
		return noteFinding("the time is "+now+"; this machine has no clock that runs without power, and nothing sets it", ntp)
	}
	return okFinding("the time is " + now)
}

func (v prober) hasRTC() bool {
	devices, err := os.ReadDir(v.root + "/sys/class/rtc")
	return err == nil && len(devices) > 0
}

// synced reads from the kernel whether a time service keeps its clock right.
func synced() bool {
	state, err := unix.Adjtimex(&unix.Timex{})
	return err != nil || state != unix.TIME_ERROR
}
