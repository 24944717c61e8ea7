package wireguard

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/router"
)

// lonelyTime is how long the process stays when the router has no pods: a pod may be started again.
var lonelyTime = 10 * time.Second

// awaitNoPods returns when the router has had no pods for lonelyTime. The kernel reports each device that
// comes or goes.
func awaitNoPods(r router.Router) error {
	var changes *nl.NetlinkSocket
	err := r.Do(func() (err error) {
		changes, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
		return err
	})
	if err != nil {
		return fmt.Errorf("watch the pods' devices: %w", err)
	}
	defer changes.Close()
	for begun := time.Now(); ; {
		is, err := r.HasPods()
		if err != nil {
			return err
		}
		timeout := unix.Timeval{} // none
		if !is {
			left := lonelyTime - time.Since(begun)
			if left <= 0 {
				return nil
			}
			timeout = unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds())
		}
		if err := changes.SetReceiveTimeout(&timeout); err != nil {
			return fmt.Errorf("watch the pods' devices: %w", err)
		}
		_, _, err = changes.Receive()
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch the pods' devices: %w", err)
		}
		if is {
			begun = time.Now()
		}
	}
}
