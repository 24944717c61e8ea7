package services

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
)

// NodeTable is the name of the table in the network of a node.
const NodeTable = "podrun-services"

// ApplyToNode makes the network of a node, which routes packets to the endpoints, direct connections as a catalog
// describes: connections of the node to addresses of Services, and connections to the node's ports at its addresses, whoever
// starts them. Endpoints see the first of the addresses as the client; those of LocalExternal see the other nodes, which are
// clients to which their answers find back. Apply does this for connections of pods. It handles IPv4.
func ApplyToNode(network string, addresses, others []netip.Addr, d Catalog) error {
	err := nsthread.Do(func() error {
		routes := d.nodeRoutes(addresses)
		mark := digest(addresses, others, routes)
		old, _, err := currentDigest(NodeTable)
		if err != nil || bytes.Equal(mark, old) {
			return err
		}
		err = nft.Transact(func(c *nftables.Conn) error {
			t := &table{Table: nft.Table{Conn: c}, name: NodeTable, digest: mark}
			return t.buildNode(addresses[0], others, d.addresses(), routes)
		})
		if err != nil {
			return err
		}
		return forgetStale(routes)
	}, network)
	if err != nil {
		return fmt.Errorf("redirect connections of the node to Services: %w", err)
	}
	return nil
}

// RemoveFromNode removes the table of ApplyToNode from the calling thread's network.
func RemoveFromNode() error {
	tables, err := nft.ListTables(nftables.TableFamilyINet, func(name string) bool { return name == NodeTable })
	if err != nil || len(tables) == 0 {
		return err
	}
	return nft.DeleteTables(tables)
}

// nodeRoutes returns the routes of Services in the network of a node: also from the node's ports, and to all
// endpoints of the same family.
func (d *Catalog) nodeRoutes(addresses []netip.Addr) (all []route) {
	for i := range d.Services {
		s := &d.Services[i]
		endpoints := d.Endpoints(s)
		external := endpoints
		if s.LocalExternal {
			external = slices.DeleteFunc(slices.Clone(endpoints), func(p *Pod) bool { return p.Remote })
		}
		for _, p := range s.Ports {
			add := func(from netip.Addr, port uint16, pods []*Pod, local bool) {
				if from.Is4() && port != 0 && protocols[p.Protocol] != 0 {
					all = append(all, route{from: netip.AddrPortFrom(from, port), protocol: p.Protocol, to: p.endpoints(pods, true), affinity: s.Affinity, local: local})
				}
			}
			for _, a := range s.Addresses {
				add(a, p.Port, endpoints, false)
			}
			for _, a := range s.External {
				add(a, p.Port, external, s.LocalExternal)
			}
			for _, a := range addresses {
				add(a, p.NodePort, external, s.LocalExternal)
			}
		}
	}
	slices.SortStableFunc(all, route.compare)
	return slices.CompactFunc(all, func(a, b route) bool { return a.compare(b) == 0 }) // of equal ones the first Service has it
}

// addresses returns the addresses of all Services.
func (d *Catalog) addresses() (all []netip.Addr) {
	for i := range d.Services {
		all = append(all, d.Services[i].Addresses...)
	}
	return all
}

// buildNode is build for the network of a node. It refuses what is for the address of a Service and has no endpoint.
func (t *table) buildNode(node netip.Addr, others, virtual []netip.Addr, routes []route) error {
	t.open()
	before, after := nftables.ChainPriority(int32(*nftables.ChainPriorityNATDest)-1), nftables.ChainPriority(int32(*nftables.ChainPriorityNATDest)+1)
	all := t.keySet("all4", routes, func(r route) bool { return len(r.to) > 0 })
	local := t.keySet("local4", routes, func(r route) bool { return len(r.to) > 0 && r.local })
	nodes, elements := v4.addressSet(t.Table.Table, "nodes", others)
	t.refill(nodes, elements)
	services, elements := v4.addressSet(t.Table.Table, "services", virtual)
	t.refill(services, elements)
	lead := t.chain("lead", "", nil, nil)
	t.lead(lead, routes)
	for name, hook := range map[string]*nftables.ChainHook{"in": nftables.ChainHookPrerouting, "out": nftables.ChainHookOutput} {
		mark := t.chain("mark"+name, nftables.ChainTypeFilter, hook, &before)
		t.AddRule(mark, v4.matchOutside(all), nft.SetMark(nft.NodeMark))
		t.AddRule(mark, v4.matchOutside(local), []expr.Any{v4.load(v4.SourceOffset, reg), &expr.Lookup{SourceRegister: reg, SetName: nodes.Name, SetID: nodes.ID}}, nft.SetMark(nft.NodeLocalMark))
		redirect := t.chain("lead"+name, nftables.ChainTypeNAT, hook, nftables.ChainPriorityNATDest)
		for _, m := range []uint32{nft.NodeMark, nft.NodeLocalMark} {
			t.AddRule(redirect, nft.MatchMark(m), []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: lead.Name}})
		}
		refuse := t.chain("refuse"+name, nftables.ChainTypeFilter, hook, &after)
		for _, rule := range nft.Reject(v4.matchForeign(services), unix.NFT_REJECT_ICMPX_PORT_UNREACH) {
			t.AddRule(refuse, rule)
		}
	}
	answer := t.chain("answer", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	t.AddRule(answer, nft.MatchMark(nft.NodeMark), nft.IPv4.MatchFamily(), nft.SourceNAT(node))
	return t.finish()
}

// keySet adds a set of the addresses, protocols and ports of some routes.
func (t *table) keySet(name string, routes []route, which func(route) bool) *nftables.Set {
	set := &nftables.Set{Table: t.Table.Table, Name: name, Concatenation: true, KeyType: nftables.MustConcatSetType(v4.address, nftables.TypeInetProto, nftables.TypeInetService)}
	var keys []nftables.SetElement
	for _, r := range routes {
		if which(r) {
			keys = append(keys, nftables.SetElement{Key: r.key()})
		}
	}
	t.refill(set, keys)
	return set
}
