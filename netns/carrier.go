package netns

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// carrierTime is how long carries waits. Without it packets would only be sent again.
const carrierTime = 2 * time.Second

// carries waits until the router's end of a pod's pair of devices sends what it is given.
// That the other end is up the kernel finds out later, on a thread of its own (linkwatch),
// and drops packets until then: who connects meanwhile tries again after a second. Since
// Linux 6.8 it finds out when it is asked for the device.
func carries(s Slot) error {
	if up, err := operating(s); up || err != nil {
		return err
	}
	changes, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return fmt.Errorf("watch %s: %w", podLink(s), err)
	}
	defer changes.Close()
	for until := time.Now().Add(carrierTime); ; {
		up, err := operating(s)
		left := time.Until(until)
		if up || err != nil || left <= 0 {
			return err
		}
		timeout := unix.NsecToTimeval(left.Nanoseconds() + int64(time.Millisecond))
		if err := changes.SetReceiveTimeout(&timeout); err != nil {
			return fmt.Errorf("watch %s: %w", podLink(s), err)
		}
		_, _, _ = changes.Receive() // whatever comes, or has been too much, has it asked again
	}
}

// operating says whether the router's end of a pod's pair of devices is of use.
func operating(s Slot) (bool, error) {
	link, err := netlink.LinkByIndex(firstPod + int(s))
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", podLink(s), err)
	}
	return link.Attrs().OperState == netlink.OperUp, nil
}
