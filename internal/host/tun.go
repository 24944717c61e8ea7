package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// tun checks for the device through which a program forwards the packets of a network namespace.
func (v prober) tun() Finding {
	const path = "/dev/net/tun"
	err := v.openTun(v.root + path)
	switch {
	case err == nil:
		return okFinding(path + " can be opened")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return noteFinding("there is no "+path+": user-space networks are not available", "as root: modprobe tun && echo tun > /etc/modules-load.d/tun.conf; in a container: --device "+path)
	case errors.Is(err, fs.ErrPermission):
		return noteFinding(path+" cannot be opened by this user: user-space networks are not available", "as root: chmod 0666 "+path)
	}
	return noteFinding(strings.ReplaceAll(fmt.Sprintf("open %s: %v", path, err), v.root+path, path), "as root: modprobe tun")
}

func openTun(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
