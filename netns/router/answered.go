package router

import (
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
)

// Who has just answered a connection will answer the next. So the kernel takes a first packet for
// an address at once, without asking the process first, if another one for that address has come back
// from there a moment ago, which only those do that were answered.

const (
	// answeredTimeout is how long that holds: a connection for who has gone since then is reset, instead of refused.
	answeredTimeout = 100 * time.Millisecond
	// maxAnswered bounds the addresses that are known of. The kernel looks once a second for
	// those whose time is over, which count until then.
	maxAnswered = 512
)

// answeredSet is the set of a pod's table that has the addresses and ports of those who answer.
func answeredSet(f nft.Family, t *nftables.Table) *nftables.Set {
	address := nftables.TypeIPAddr
	if f.AddrSize == nft.IPv6.AddrSize {
		address = nftables.TypeIP6Addr
	}
	return &nftables.Set{
		Table: t, Name: answeredSetName(f), KeyType: nftables.MustConcatSetType(address, nftables.TypeInetService), Concatenation: true,
		Dynamic: true, HasTimeout: true, Timeout: answeredTimeout, Size: maxAnswered,
	}
}

func answeredSetName(f nft.Family) string {
	if f.AddrSize == nft.IPv6.AddrSize {
		return "answering6"
	}
	return "answering4"
}

// markAnswered notes whom a first packet is for. Where there is no more room it matches nothing.
func markAnswered(f nft.Family) []expr.Any {
	return append(loadDestination(f), &expr.Dynset{SrcRegKey: unix.NFT_REG32_00, SetName: answeredSetName(f), Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: answeredTimeout})
}

// matchAnswered matches first packets for those.
func matchAnswered(f nft.Family) []expr.Any {
	return append(loadDestination(f), &expr.Lookup{SourceRegister: unix.NFT_REG32_00, SetName: answeredSetName(f)})
}

// loadDestination loads whom a packet is for as such a set has it.
func loadDestination(f nft.Family) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG32_00, Base: expr.PayloadBaseNetworkHeader, Offset: f.SourceOffset + f.AddrSize, Len: f.AddrSize},
		&expr.Payload{DestRegister: unix.NFT_REG32_00 + f.AddrSize/4, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
}
