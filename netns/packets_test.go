package netns

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// Without nftables rules of routing keep a pod from speaking by IPv6 in another's name, as
// long as it is there.
func TestOwnSourceWithoutTables(t *testing.T) {
	router := OpenRouter(testenv.Network(t))
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	pods := map[Slot]string{1: testenv.Network(t), 2: testenv.Network(t), 3: testenv.Network(t)}
	for s, ns := range pods {
		if err := router.Attach(ns, pool, s); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a second time is as good
		if err := router.Do(func() error { return keepSource6(pool, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	at := netip.AddrPortFrom(pool.Of(2).V6, 5000)
	var heard net.PacketConn
	err = nsthread.Do(func() (err error) { heard, err = net.ListenPacket("udp", at.String()); return err }, pods[2])
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	heard.SetDeadline(time.Now().Add(time.Minute))
	err = nsthread.Do(func() error {
		var b batch
		b.bringUp(loopback, "loopback")
		b.address(loopback, "loopback", host(pool.Of(3).V6))
		if err := b.send(); err != nil {
			return err
		}
		for _, as := range []Slot{3, 1} {
			fd, err := v6.socket(unix.SOCK_DGRAM, netip.AddrPortFrom(pool.Of(as).V6, 0))
			if err != nil {
				return err
			}
			err = unix.Sendto(fd, []byte("word"), 0, SockAddr(at))
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
	_, from, err := heard.ReadFrom(make([]byte, 10))
	if err != nil || from.(*net.UDPAddr).AddrPort().Addr() != pool.Of(1).V6 {
		t.Errorf("heard from %v, %v, want from %s first", from, err, pool.Of(1).V6)
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
