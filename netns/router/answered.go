package router

import (
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
)

// A server that has just accepted a connection will most likely accept the next one. So the kernel
// passes a SYN to an address without a detour through the proxy if the proxy has, a moment ago,
// returned another SYN to that address. The proxy returns a SYN only after the server has accepted.

const (
	// answeredTimeout is how long an entry is valid: a connection to a server that has stopped
	// since then is reset, instead of refused.
	answeredTimeout = 100 * time.Millisecond
	// maxAnswered limits the number of entries. The kernel removes expired entries once a second;
	// they count until then.
	maxAnswered = 512
)

// answeredSet is the set in a pod's table that contains the addresses and ports of answering
// servers.
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

// markAnswered records the destination of a first packet. If the set is full it matches nothing.
func markAnswered(f nft.Family) []expr.Any {
	return append(loadDestination(f), &expr.Dynset{SrcRegKey: unix.NFT_REG32_00, SetName: answeredSetName(f), Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: answeredTimeout})
}

// matchAnswered matches first packets to destinations in the set.
func matchAnswered(f nft.Family) []expr.Any {
	return append(loadDestination(f), &expr.Lookup{SourceRegister: unix.NFT_REG32_00, SetName: answeredSetName(f)})
}

// loadDestination loads a packet's destination in the format of the set.
func loadDestination(f nft.Family) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG32_00, Base: expr.PayloadBaseNetworkHeader, Offset: f.DestinationOffset(), Len: f.AddrSize},
		&expr.Payload{DestRegister: unix.NFT_REG32_00 + f.AddrSize/4, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
}
