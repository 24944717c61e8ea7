package netns

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// WirePackets is the only wire where the kernel takes nothing by itself: all of the pod's
// packets, each after a header of struct virtio_net_hdr (linux/virtio_net.h).
const WirePackets = "packets"

// WirePackets is Wire with that wire alone. It takes no more of the kernel than a TUN
// device.
func (r Router) WirePackets(pool Pool, s Slot) (Wires, error) {
	w := Wires{}
	err := r.Do(func() error {
		tun, err := openTUN(s, unix.IFF_VNET_HDR)
		if err != nil {
			return err
		}
		w[WirePackets] = tun
		// What an earlier pod's rules take would not come.
		if err := delTables(map[Slot]bool{s: true}); err != nil {
			return err
		}
		raw, err := tun.SyscallConn()
		if err == nil {
			cerr := raw.Control(func(fd uintptr) {
				err = unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6)
			})
			err = errors.Join(err, cerr)
		}
		if err != nil {
			return fmt.Errorf("leave segmentation to the TUN device: %w", err)
		}
		return direct(pool, s)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("carry the pod's traffic: %w", err), w.Close())
	}
	return w, nil
}
