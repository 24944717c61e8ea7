package netns

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
)

// Numbers inside the router of what leaves it by the kernel alone: netns/uplink has the
// device.
const (
	OutMark  = 2   // of packets that are to leave
	OutTable = 101 // leads them
	OutPref  = 101 // ip-rule(8)
)

// usualSegments is as large as most devices take them that the host has.
const usualSegments = 1 << 16

// WireOut is Wire for a pod, by the path of its network namespace, of which what it sends
// by IPv4 leaves marked with OutMark: TCP, UDP and ICMP to whom a pod may reach. All else
// comes to the wires as ever: what it asks of the gateway, HostLoopback, IPv6, and what is
// to be refused. The pod's packets to others than pods are at most mtu bytes long. The
// calling thread's network is the host's.
func (r Router) WireOut(podNS string, pool Pool, s Slot, mtu int) (Wires, error) {
	control, controlErr := os.ReadFile("/proc/sys/" + congestionControl)
	err := nsthread.Do(func() error {
		// Its connections go farther than to the router: they are like the host's.
		if controlErr == nil {
			_ = sysctl(congestionControl, strings.TrimSpace(string(control))) // the host may keep it for itself
		}
		var b batch
		b.bringUp(eth0, "eth0", attribute(unix.IFLA_GSO_IPV4_MAX_SIZE, nl.Uint32Attr(usualSegments)))
		own, gateway := pool.Of(s).V4, pool.Gateway().V4
		b.route("add the route to pods", way{to: pool.V4, link: eth0, by: gateway, from: own})
		b.route(fmt.Sprintf("add the default route by %s", gateway), way{to: everything(own), link: eth0, by: gateway, from: own, mtu: mtu})
		return b.send()
	}, podNS)
	if err != nil {
		return nil, fmt.Errorf("carry the pod's traffic: %w", err)
	}
	return r.wire(pool, s, byKernel)
}

// out marks what leaves by the kernel; the rest goes on. Who answers a connection that came
// in the name of others is found first, as anywhere.
func out() [][]expr.Any {
	all := [][]expr.Any{append(append(v4.only(), protocol(unix.IPPROTO_UDP)...), v4.ongoing()...)}
	for _, p := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP} {
		rule := append(v4.only(), protocol(p)...)
		for _, not := range nowhere {
			rule = append(rule, v4.address(v4.source+v4.size, not, expr.CmpOpNeq)...)
		}
		rule = append(rule,
			&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(OutMark)},
			&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
		all = append(all, append(rule, verdict(expr.VerdictAccept)...))
	}
	return all
}
