package node

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// The private key is made once, and only its owner reads it.
func TestWireguardKey(t *testing.T) {
	s := &state{dir: t.TempDir()}
	first, err := s.wireguardKey()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, "wireguard.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if second, err := s.wireguardKey(); err != nil || !first.Equal(second) {
		t.Errorf("another key the second time: %v", err)
	}
	if err := os.WriteFile(path, []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.wireguardKey(); err == nil {
		t.Error("a damaged key")
	}
}

// What was set last is known to the next agent. Without pods there is nothing to connect.
func TestTunnelRemembers(t *testing.T) {
	dir := t.TempDir()
	s := &state{dir: dir}
	key, err := s.wireguardKey()
	if err != nil {
		t.Fatal(err)
	}
	tun := &tunnel{dirs: store.Dirs{Data: dir, Runtime: dir}, state: s, key: key, port: 1, mtu: 1420}
	if networks, peers, err := tun.Last(); len(networks) > 0 || len(peers) > 0 || err != nil {
		t.Errorf("at first: %v, %v, %v", networks, peers, err)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}
	peers := []control.Peer{{PublicKey: control.Key{1}, Endpoint: netip.MustParseAddrPort("192.0.2.2:51820"), Networks: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}}}
	if _, err := tun.Set(networks, peers); err != nil {
		t.Fatal(err)
	}
	gotOwn, gotPeers, err := tun.Last()
	if err != nil || !reflect.DeepEqual(gotOwn, networks) || !reflect.DeepEqual(gotPeers, peers) {
		t.Errorf("%v, %v, %v", gotOwn, gotPeers, err)
	}
	if _, err := os.Stat(tun.socket()); err == nil {
		t.Error("a process was started without pods")
	}
	if err := tun.leave(&options{}); err != nil {
		t.Fatal(err)
	}
	if networks, peers, err := tun.Last(); len(networks) > 0 || len(peers) > 0 || err != nil {
		t.Errorf("after leaving: %v, %v, %v", networks, peers, err)
	}
}

func TestTunnelMTU(t *testing.T) {
	if got := tunnelMTU(netip.MustParseAddr("127.0.0.1")); got != 1420 { // loopback has 65536
		t.Errorf("with a large MTU: %d", got)
	}
	if got := tunnelMTU(netip.MustParseAddr("192.0.2.77")); got != 1420 {
		t.Errorf("with an address that no device has: %d", got)
	}
}
