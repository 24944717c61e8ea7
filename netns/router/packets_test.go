package router

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// Without nftables, routing rules keep a pod from using foreign IPv6 source addresses as long as it
// is attached.
func TestSpoofingIsDroppedWithoutNFTables(t *testing.T) {
	router := Open(testenv.Network(t))
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	pods := map[ipam.Slot]string{1: testenv.Network(t), 2: testenv.Network(t), 3: testenv.Network(t)}
	for s, ns := range pods {
		if err := router.Attach(ns, pool, s); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // repeating it changes nothing
		if err := router.Do(func() error { return dropSpoofed6(pool, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	address := netip.AddrPortFrom(pool.Addresses(2).V6, 5000)
	var received net.PacketConn
	err = nsthread.Do(func() (err error) { received, err = net.ListenPacket("udp", address.String()); return err }, pods[2])
	if err != nil {
		t.Fatal(err)
	}
	defer received.Close()
	received.SetDeadline(time.Now().Add(time.Minute))
	err = nsthread.Do(func() error {
		var b nlbatch.Batch
		b.SetUp(nlbatch.LoopbackIndex, "loopback")
		b.AddAddress(nlbatch.LoopbackIndex, "loopback", nft.HostPrefix(pool.Addresses(3).V6))
		if err := b.Send(); err != nil {
			return err
		}
		for _, as := range []ipam.Slot{3, 1} {
			fd, err := transparentSocket(nft.IPv6, unix.SOCK_DGRAM, netip.AddrPortFrom(pool.Addresses(as).V6, 0))
			if err != nil {
				return err
			}
			err = unix.Sendto(fd, []byte("word"), 0, rawsys.Sockaddr(address))
			unix.Close(fd)
			if err != nil {
				return err
			}
		}
		return nil
	}, pods[1])
	if err != nil {
		t.Fatal(err)
	}
	_, from, err := received.ReadFrom(make([]byte, 10))
	if err != nil || from.(*net.UDPAddr).AddrPort().Addr() != pool.Addresses(1).V6 {
		t.Errorf("heard from %v, %v, want from %s first", from, err, pool.Addresses(1).V6)
	}
	if err := router.Detach(1); err != nil {
		t.Error(err)
	}
	err = router.Do(func() error {
		rules, err := netlink.RuleList(netlink.FAMILY_V6)
		if i := slices.IndexFunc(rules, func(r netlink.Rule) bool { return r.IifName == podLink(1) }); i >= 0 {
			t.Errorf("there still is %v", rules[i])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
