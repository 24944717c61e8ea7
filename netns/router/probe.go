package router

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/ipam"
)

// Probe makes a router of an unused network namespace and attaches a pod to it, as a test of the
// host.
func Probe(ns string) error {
	var file *os.File
	err := nsthread.Do(func() error {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	defer file.Close()
	router := Open(ns)
	pool, err := ipam.ChoosePool(nil)
	if err == nil {
		err = nsthread.Do(func() error { return prepare(pool) }, ns)
	}
	if err == nil {
		err = router.Attach(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), pool, 1)
	}
	if err != nil {
		return WithHint(err)
	}
	traffic, err := router.OpenTraffic(pool, 1)
	if err != nil {
		return WithHint(err)
	}
	return traffic.Close()
}

// WithHint adds the hint to an error of this package. Most often a module of the kernel is
// missing, which unprivileged users cannot load everywhere.
func WithHint(err error) error {
	const modules = "as root: modprobe -a tun veth nft_tproxy && printf '%s\\n' tun veth nft_tproxy > /etc/modules-load.d/podrun.conf"
	hint := modules + "; in a container: on its host"
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		hint = "make /dev/net/tun accessible: as root, modprobe tun && chmod 0666 /dev/net/tun; in a container: start it with --device /dev/net/tun"
	}
	return report.New(report.Failure, hint, "%w", err)
}
