package netns

import (
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Who has just answered a connection will answer the next. So the kernel takes a first packet for
// an address at once, without asking the process first, if another one for that address has come back
// from there a moment ago, which only those do that were answered.

const (
	// trust is how long that holds: a connection for who has gone since then is reset, instead of refused.
	trust = 100 * time.Millisecond
	// mostAnswering bounds the addresses that are known of. The kernel looks once a second for
	// those whose time is over, which count until then.
	mostAnswering = 512
)

// answering is the set of a pod's table that has the addresses and ports of those who answer.
func (f ipFamily) answering(t *nftables.Table) *nftables.Set {
	address := nftables.TypeIPAddr
	if f.size == v6.size {
		address = nftables.TypeIP6Addr
	}
	return &nftables.Set{
		Table: t, Name: f.answerers(), KeyType: nftables.MustConcatSetType(address, nftables.TypeInetService), Concatenation: true,
		Dynamic: true, HasTimeout: true, Timeout: trust, Size: mostAnswering,
	}
}

func (f ipFamily) answerers() string {
	if f.size == v6.size {
		return "answering6"
	}
	return "answering4"
}

// answers notes whom a first packet is for. Where there is no more room it matches nothing.
func (f ipFamily) answers() []expr.Any {
	return append(f.loadDestination(), &expr.Dynset{SrcRegKey: unix.NFT_REG32_00, SetName: f.answerers(), Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: trust})
}

// justAnswered matches first packets for those.
func (f ipFamily) justAnswered() []expr.Any {
	return append(f.loadDestination(), &expr.Lookup{SourceRegister: unix.NFT_REG32_00, SetName: f.answerers()})
}

// loadDestination loads whom a packet is for as such a set has it.
func (f ipFamily) loadDestination() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG32_00, Base: expr.PayloadBaseNetworkHeader, Offset: f.source + f.size, Len: f.size},
		&expr.Payload{DestRegister: unix.NFT_REG32_00 + f.size/4, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
}
