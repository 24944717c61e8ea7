package wireguard

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/podrun/podrun/netns/wireguard/control"
)

// keepalive is the interval of packets to a peer, in seconds: it keeps the entries of NAT routers, which
// forget a UDP flow after 30 seconds (wg(8), PersistentKeepalive).
const keepalive = 25

// changes returns the requests (https://www.wireguard.com/xplatform/) that change a device from one
// configuration to another. What stays is not repeated: a peer keeps its session, and the endpoint from which
// its last packet has come.
func changes(from, to *control.Config) string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	if from.PrivateKey != to.PrivateKey {
		line("private_key", hex.EncodeToString(to.PrivateKey[:]))
	}
	if from.Port != to.Port {
		line("listen_port", to.Port)
	}
	for _, p := range from.Peers { // first: another peer may have its networks now
		if find(to.Peers, p.PublicKey) == nil {
			line("public_key", hex.EncodeToString(p.PublicKey[:]))
			line("remove", true)
		}
	}
	for _, p := range to.Peers {
		old := find(from.Peers, p.PublicKey)
		if old != nil && old.Endpoint == p.Endpoint && slices.Equal(old.Networks, p.Networks) {
			continue
		}
		line("public_key", hex.EncodeToString(p.PublicKey[:]))
		if old == nil {
			line("persistent_keepalive_interval", keepalive)
		}
		if old == nil || old.Endpoint != p.Endpoint {
			line("endpoint", p.Endpoint)
		}
		line("replace_allowed_ips", true)
		for _, n := range p.Networks {
			line("allowed_ip", n)
		}
	}
	return b.String()
}

func find(peers []control.Peer, k control.Key) *control.Peer {
	if i := slices.IndexFunc(peers, func(p control.Peer) bool { return p.PublicKey == k }); i >= 0 {
		return &peers[i]
	}
	return nil
}
