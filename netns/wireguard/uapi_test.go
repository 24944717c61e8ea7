package wireguard

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/netns/wireguard/control"
)

// Only what differs is changed, so that a peer's session and its endpoint stay.
func TestChanges(t *testing.T) {
	key := func(b byte) (k control.Key) { k[0] = b; return k }
	name := func(b string) string { return "public_key=" + b + strings.Repeat("0", 62) }
	peer := func(b byte, endpoint string, networks ...string) control.Peer {
		p := control.Peer{PublicKey: key(b), Endpoint: netip.MustParseAddrPort(endpoint)}
		for _, n := range networks {
			p.Networks = append(p.Networks, netip.MustParsePrefix(n))
		}
		return p
	}
	config := control.Config{PrivateKey: key(1), Port: 51820, Peers: []control.Peer{peer(2, "192.0.2.2:51820", "10.244.2.0/24"), peer(3, "[2001:db8::3]:1", "10.244.3.0/24", "fd00::/64")}}
	moved, next, port := config, config, config
	moved.Peers = []control.Peer{peer(2, "192.0.2.9:51820", "10.244.2.0/24"), config.Peers[1]}
	next.Peers = []control.Peer{config.Peers[1], peer(4, "192.0.2.4:51820", "10.244.2.0/24")}
	port.Port = 1
	for _, c := range []struct {
		name     string
		from, to control.Config
		want     []string
	}{
		{"from nothing", control.Config{}, config, []string{"private_key=01" + strings.Repeat("0", 62), "listen_port=51820",
			name("02"), "persistent_keepalive_interval=25", "endpoint=192.0.2.2:51820", "replace_allowed_ips=true", "allowed_ip=10.244.2.0/24",
			name("03"), "persistent_keepalive_interval=25", "endpoint=[2001:db8::3]:1", "replace_allowed_ips=true", "allowed_ip=10.244.3.0/24", "allowed_ip=fd00::/64"}},
		{"nothing", config, config, nil},
		{"an endpoint", config, moved, []string{name("02"), "endpoint=192.0.2.9:51820", "replace_allowed_ips=true", "allowed_ip=10.244.2.0/24"}},
		{"a node that replaces another", config, next, []string{name("02"), "remove=true",
			name("04"), "persistent_keepalive_interval=25", "endpoint=192.0.2.4:51820", "replace_allowed_ips=true", "allowed_ip=10.244.2.0/24"}},
		{"the port", config, port, []string{"listen_port=1"}},
	} {
		if diff := cmp.Diff(c.want, strings.Fields(changes(&c.from, &c.to)), cmp.Transformer("nil", func(s []string) string { return strings.Join(s, "\n") })); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
