package netns

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// What nftables does with a pod's packets in the router: one table per pod, made and
// removed in one transaction each, so that no supervisor touches another's.
//
//   - What does not have the pod's own address as its source is dropped.
//   - What is for a pod or a Service goes on, to be routed by the kernel.
//   - The first packet of a TCP connection goes on too, to the TUN device: the process
//     there connects first and sends it back, and then it comes to the listening socket. So
//     a pod sees a refused connection as refused.
//   - Every other one of TCP and UDP comes to a socket of that process, which has the
//     address that the pod speaks to (TPROXY: Documentation/networking/tproxy.rst).
//   - The rest, ICMP, goes to the TUN device.

// tableName is a pod's table. Its rules follow from its name alone, as long as the router
// lives: the number changes with every change of rules.
func tableName(s Slot, leaves bool) string {
	if leaves {
		return fmt.Sprintf("pod%d.3%s", s, outSuffix)
	}
	return fmt.Sprintf("pod%d.3", s)
}

// port is where a pod's connections are taken, on the router's loopback.
func port(s Slot) uint16 { return firstPort + uint16(s) }

// addTable makes a pod's table, if it is not there, in place of others of that pod. It asks
// first: to remove a table, and to fail, takes the kernel longer than all the rest.
func addTable(s Slot, pool Pool, own Addresses, leaves bool) error {
	there, err := tablesOf(map[Slot]bool{s: true})
	if err != nil {
		return fmt.Errorf("list nftables rules: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName(s, leaves)}
	if len(there) == 1 && there[0].Name == t.Name {
		return nil
	}
	err = Transact(func(c *nftables.Conn) error {
		for _, old := range there {
			c.DelTable(old)
		}
		c.CreateTable(t)
		chain := c.AddChain(&nftables.Chain{
			Name: "from", Table: t, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle,
		})
		for _, r := range rules(s, pool, own, leaves) {
			c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: r})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add nftables rules of the pod: %w", err)
	}
	return nil
}

// delTables removes the tables of pods, in one transaction. Where none can be listed, as on
// kernels without nf_tables, there is none.
func delTables(gone map[Slot]bool) error {
	tables, err := tablesOf(gone)
	if err != nil || len(tables) == 0 {
		return nil
	}
	err = Transact(func(c *nftables.Conn) error {
		for _, t := range tables {
			c.DelTable(t)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove nftables rules: %w", err)
	}
	return nil
}

// tablesOf lists the tables of pods, of all versions.
func tablesOf(pods map[Slot]bool) ([]*nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool {
		var s Slot
		var version int
		n, _ := fmt.Sscanf(t.Name, "pod%d.%d", &s, &version)
		return n != 2 || !pods[s]
	}), err
}

// rules are those of a pod's only chain.
func rules(s Slot, pool Pool, own Addresses, leaves bool) [][]expr.Any {
	var all [][]expr.Any
	add := func(parts ...[]expr.Any) {
		var rule []expr.Any
		for _, p := range parts {
			rule = append(rule, p...)
		}
		all = append(all, rule)
	}
	for _, f := range families {
		add(iif(tunLink(s)), f.only(), firstPacket(), f.take(port(s)))
	}
	add(notIif(podLink(s)), verdict(expr.VerdictAccept))
	// Its own addresses, and those by which neighbours find each other.
	for _, f := range families {
		add(f.only(), f.from(host(f.of(own)), expr.CmpOpNeq), f.fromLink(), verdict(expr.VerdictDrop))
	}
	add(v4.to(beyond), verdict(expr.VerdictDrop))
	add(v6.to(onLink), verdict(expr.VerdictAccept))
	for _, f := range families {
		// The router itself has nothing to offer but names and an echo.
		gateway := f.to(host(f.of(pool.Gateway())))
		add(gateway, destinationPort(domain), f.take(port(s)))
		add(gateway, connected(), deliver()) // answers to what came in the router's name
		add(gateway, otherProtocol(f.icmp), verdict(expr.VerdictDrop))
		add(f.to(f.pool(pool)), verdict(expr.VerdictAccept))
	}
	if leaves {
		all = append(all, out()...)
	}
	add(firstPacket(), verdict(expr.VerdictAccept))
	// What is neither TCP nor UDP has no sockets, so these do not apply to it.
	add(connected(), deliver())
	for _, f := range families {
		add(f.only(), f.take(port(s)))
	}
	return all
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	onLink    = netip.MustParsePrefix("fe00::/7")    // multicast too: neighbours are found by it
	beyond    = netip.MustParsePrefix("224.0.0.0/3") // multicast, broadcast and what nobody has

	// nowhere is what a pod is not led to, as netns/egress has it, besides beyond.
	nowhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), host(HostLoopback.V4)}
)

// ipFamily is what differs between IPv4 and IPv6.
type ipFamily struct {
	number   byte
	source   uint32 // offset in the header
	size     uint32 // of an address
	icmp     byte
	loopback netip.Addr
}

var (
	v4       = ipFamily{unix.NFPROTO_IPV4, 12, 4, unix.IPPROTO_ICMP, netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	v6       = ipFamily{unix.NFPROTO_IPV6, 8, 16, unix.IPPROTO_ICMPV6, netip.IPv6Loopback()}
	families = []ipFamily{v4, v6}
)

func (f ipFamily) of(a Addresses) netip.Addr {
	if f.size == 4 {
		return a.V4
	}
	return a.V6
}

func (f ipFamily) pool(p Pool) netip.Prefix {
	if f.size == 4 {
		return p.V4
	}
	return p.V6
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func (f ipFamily) only() []expr.Any { return metaIs(expr.MetaKeyNFPROTO, []byte{f.number}) }

// from matches packets whose source is, or is not, in a prefix. The family is known.
func (f ipFamily) from(p netip.Prefix, op expr.CmpOp) []expr.Any { return f.address(f.source, p, op) }

// to matches packets of the family for a prefix.
func (f ipFamily) to(p netip.Prefix) []expr.Any {
	return append(f.only(), f.address(f.source+f.size, p, expr.CmpOpEq)...)
}

func (f ipFamily) address(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	mask := make([]byte, f.size)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: f.size, Mask: mask, Xor: make([]byte, f.size)},
		&expr.Cmp{Op: op, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

// fromLink excepts an address of the link from what is dropped: neighbours are found by
// it, and it is routed nowhere.
func (f ipFamily) fromLink() []expr.Any {
	if f.size == 4 {
		return nil
	}
	return append(f.from(linkLocal, expr.CmpOpNeq), f.from(host(netip.IPv6Unspecified()), expr.CmpOpNeq)...)
}

// take gives a packet to the socket that listens to the port on the router's loopback.
func (f ipFamily) take(port uint16) []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Immediate{Register: 2, Data: f.loopback.AsSlice()},
		&expr.TProxy{Family: f.number, TableFamily: unix.NFPROTO_INET, RegPort: 1, RegAddr: 2},
	}, deliver()...)
}

// deliver has a packet delivered here, whatever its destination.
func deliver() []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(localMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}, verdict(expr.VerdictAccept)...)
}

// connected matches packets for which there is a socket with their own addresses.
func connected() []expr.Any {
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyTransparent, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
		&expr.Socket{Key: expr.SocketKeyWildcard, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
	}
}

// firstPacket matches the first packet of a TCP connection.
func firstPacket() []expr.Any {
	return append(protocol(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{flagFIN | flagSYN | flagRST | flagACK}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{flagSYN}},
	)
}

// flags of a TCP header (RFC 9293).
const (
	flagFIN, flagSYN, flagRST, flagACK = 1, 2, 4, 16
)

// domain is the port of the pods' resolver, at the gateway (RFC 1035).
const domain = 53

func destinationPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

func protocol(p byte) []expr.Any { return metaIs(expr.MetaKeyL4PROTO, []byte{p}) }

func otherProtocol(p byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{p}}}
}

func iif(name string) []expr.Any { return metaIs(expr.MetaKeyIIFNAME, interfaceName(name)) }

func notIif(name string) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: interfaceName(name)}}
}

func interfaceName(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

func metaIs(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }
