package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lingering asks whether the user's pods outlive its last login, and start before
// the first: without it systemd ends all of a user's services and removes the
// runtime directory at the last logout (loginctl(1), enable-linger).
func (v view) lingering() Finding {
	switch {
	case v.uid == 0:
		return fine("not needed by root")
	case !v.systemd():
		return fine("not needed: systemd does not run here")
	case v.user != "" && v.exists("/var/lib/systemd/linger/"+v.user):
		return fine("pods of " + v.user + " go on after a logout")
	}
	return warning("pods of "+v.name()+" end when it logs out, and do not start with the machine", "loginctl enable-linger (or as root: loginctl enable-linger "+v.name()+")")
}

// oldest is before any release of podrun: a clock that shows an earlier time is not
// set. Boards without a battery start in 1970, or when their image was made.
func oldest() time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock asks whether the time may be right. With a wrong one no registry's
// certificate is valid; back-off and deadlines do not care.
func (v view) clock() Finding {
	floor, what := oldest(), ""
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
		return warning(fmt.Sprintf("the clock is not set: it shows %s, which is before %s%s; registries' certificates will not be valid", now, floor.UTC().Format("2006-01-02"), what), ntp+"; until then as root: date -s '2030-01-31 12:00' with the right time")
	case !v.hasRTC() && !v.synced():
		return note("the time is "+now+"; this machine has no clock that runs without power, and nothing sets it", ntp)
	}
	return fine("the time is " + now)
}

func (v view) hasRTC() bool {
	devices, err := os.ReadDir(v.root + "/sys/class/rtc")
	return err == nil && len(devices) > 0
}

// synced asks the kernel: whoever keeps its clock right tells it.
func synced() bool {
	state, err := unix.Adjtimex(&unix.Timex{})
	return err != nil || state != unix.TIME_ERROR
}

// tun asks for the device by which a program carries the packets of a network
// namespace.
func (v view) tun() Finding {
	const path = "/dev/net/tun"
	err := v.openTun(v.root + path)
	switch {
	case err == nil:
		return fine(path + " can be opened")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return note("there is no "+path+": networks in user space cannot be made", "as root: modprobe tun && echo tun > /etc/modules-load.d/tun.conf; in a container: --device "+path)
	case errors.Is(err, fs.ErrPermission):
		return note(path+" is closed to this user: networks in user space cannot be made", "as root: chmod 0666 "+path)
	}
	return note(strings.ReplaceAll(fmt.Sprintf("open %s: %v", path, err), v.root+path, path), "as root: modprobe tun")
}

func openTun(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
