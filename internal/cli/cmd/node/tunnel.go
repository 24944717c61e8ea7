package node

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/hostdeps"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// The values of --pod-network.
const (
	podNetworkNone   = "none"
	podNetworkTunnel = "wireguard"
	podNetworkRouted = "routed"
)

// wireguardPort is the port in WireGuard's examples, and in most configurations.
const wireguardPort = 51820

// tunnel runs the WireGuard process of the router.
type tunnel struct {
	dirs  store.Dirs
	state *state
	key   *ecdh.PrivateKey
	port  uint16
	mtu   int

	sent   control.Config // what the process has
	router uint64         // of the process that has it
}

// network returns the node's part in the pod network of the cluster; nil if it has none. via is nil unless the node
// routes.
func (o *options) network(dirs store.Dirs, s *state) (n *node.Network, via *routes, err error) {
	t := &tunnel{dirs: dirs, state: s, port: uint16(o.wireguardPort)}
	if o.podNetwork == podNetworkNone {
		return nil, nil, t.leave(o)
	}
	address, err := netip.ParseAddr(o.node.Addresses[0])
	if err != nil {
		return nil, nil, fmt.Errorf("find the host's address: %w", err)
	}
	if o.podNetwork == podNetworkRouted {
		if via, err = newRoutes(dirs, address); err == nil {
			err = t.end()
		}
		return node.NewRoutedNetwork(via, address), via, err
	}
	if t.key, err = s.wireguardKey(); err != nil {
		return nil, nil, err
	}
	if err := removeRoutes(dirs); err != nil {
		return nil, nil, err
	}
	t.mtu = tunnelMTU(address)
	return node.NewNetwork(t, control.Key(t.key.PublicKey().Bytes()), netip.AddrPortFrom(address, t.port)), nil, nil
}

// wireguardKey returns the node's private key, which is made when it is used for the first time.
func (s *state) wireguardKey() (*ecdh.PrivateKey, error) {
	path := filepath.Join(s.dir, "wireguard.key")
	var k control.Key
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh, gerr := ecdh.X25519().GenerateKey(rand.Reader)
		if gerr != nil {
			return nil, fmt.Errorf("make the node's WireGuard key: %w", gerr)
		}
		text, _ = control.Key(fresh.Bytes()).MarshalText() // cannot fail
		err = store.WriteFile(path, append(text, '\n'))
	}
	if err == nil {
		err = k.UnmarshalText([]byte(strings.TrimSpace(string(text))))
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's WireGuard key %s: %w", path, err)
	}
	return ecdh.X25519().NewPrivateKey(k[:])
}

// The MTU of the tunnel: WireGuard adds at most 80 bytes to a packet, in IPv6. IPv6 needs at least 1280.
const (
	defaultTunnelMTU, minTunnelMTU = 1420, 1280
	tunnelOverhead                 = 80
)

// tunnelMTU returns the MTU of a tunnel by the device that has an address.
func tunnelMTU(address netip.Addr) int {
	mtu := deviceMTU(address)
	if mtu == 0 {
		return defaultTunnelMTU
	}
	return max(minTunnelMTU, min(defaultTunnelMTU, mtu-tunnelOverhead))
}

// deviceMTU returns the MTU of the device that has an address; 0 if there is none.
func deviceMTU(address netip.Addr) int {
	devices, _ := net.Interfaces() // without them the device is not found
	for _, d := range devices {
		addresses, _ := d.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(address.AsSlice()) {
				return d.MTU
			}
		}
	}
	return 0
}

// Last implements node.Tunnel.
func (t *tunnel) Last() (networks []netip.Prefix, peers []control.Peer, err error) {
	n, err := t.dirs.PodNetwork()
	if n.Node.IsValid() { // the last run had no tunnel
		return n.CIDRs, nil, err
	}
	for _, p := range n.Peers {
		peer := control.Peer{Endpoint: p.Endpoint, Networks: p.CIDRs}
		if err = errors.Join(err, peer.PublicKey.UnmarshalText([]byte(p.Key))); err == nil {
			peers = append(peers, peer)
		}
	}
	return n.CIDRs, peers, err
}

// Set implements node.Tunnel.
func (t *tunnel) Set(networks []netip.Prefix, peers []control.Peer) (unreached, err error) {
	n := store.PodNetwork{CIDRs: networks, MTU: t.mtu}
	for _, p := range peers {
		key, _ := p.PublicKey.MarshalText() // cannot fail
		n.Peers = append(n.Peers, store.PodNetworkPeer{Key: string(key), Endpoint: p.Endpoint, CIDRs: p.Networks})
	}
	if err := setPodNetwork(t.dirs, n); err != nil {
		return nil, err
	}
	return nil, t.connect(&control.Config{PrivateKey: control.Key(t.key.Bytes()), Port: t.port, MTU: t.mtu, Own: networks, Peers: peers})
}

// setPodNetwork records the host's part in a pod network, unless pods have other addresses.
func setPodNetwork(dirs store.Dirs, n store.PodNetwork) error {
	others, err := dirs.SetPodNetwork(n)
	if err == nil && len(others) > 0 {
		err = report.New(report.Failure, "kubectl drain, or podrun down, ends them; pods of the cluster start then",
			"pods with other addresses than the cluster's %s are running: %s", n.CIDRs[0], names(others))
	}
	return err
}

// names returns the names of pods, the first few of many.
func names(pods []store.Pod) string {
	const most = 5
	var list []string
	for _, p := range pods[:min(len(pods), most)] {
		list = append(list, p.Namespace+"/"+p.Name)
	}
	if len(pods) > most {
		list = append(list, fmt.Sprintf("and %d more", len(pods)-most))
	}
	return strings.Join(list, ", ")
}

func (t *tunnel) lockFile() string { return filepath.Join(t.dirs.Runtime, "wireguard.lock") }
func (t *tunnel) socket() string   { return filepath.Join(t.dirs.Runtime, "wireguard.sock") }
func (t *tunnel) log() string      { return filepath.Join(t.state.dir, "wireguard.log") }

// connect gives the process of the router a configuration. It starts the process if there are pods and no
// process.
func (t *tunnel) connect(c *control.Config) error {
	user, router, err := podinit.OpenShared(t.dirs)
	if err != nil || router == nil {
		return err
	}
	defer router.Close()
	if user != nil {
		defer user.Close()
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(router.Fd()), &st); err != nil {
		return fmt.Errorf("find the router: %w", err)
	}
	started, err := t.ensure(user, router, st.Ino)
	if err != nil {
		return err
	}
	if !started && t.router == st.Ino && reflect.DeepEqual(t.sent, *c) {
		return nil
	}
	if err := control.Send(t.socket(), c); err != nil {
		t.router = 0
		return report.New(report.Failure, t.log()+" may have more about it", "%w", err)
	}
	t.sent, t.router = *c, st.Ino
	return nil
}

// ensure starts the process of a router, unless it runs. It ends the process of another router, whose pods have ended.
func (t *tunnel) ensure(user, router *os.File, inode uint64) (started bool, err error) {
	lock, err := store.OpenFileLock(t.lockFile())
	if err != nil {
		return false, err
	}
	defer lock.Close() // the process has its own descriptor
	free, err := lock.TryExclusive()
	if err != nil {
		return false, err
	}
	if !free {
		is, err := control.ReadIdentity(lock.File())
		if err != nil || is.Router == inode {
			return false, err
		}
		if err := endProcess(lock, is); err != nil {
			return false, err
		}
	}
	return true, t.start(user, router, lock)
}

// endTime limits the end of a process that was killed.
const endTime = 10 * time.Second

// endProcess kills the process that holds a lock, and takes the lock.
func endProcess(lock *store.FileLock, is control.Identity) error {
	err := is.Kill(unix.SIGKILL)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end the WireGuard process of another router: %w", err)
	}
	for deadline := time.Now().Add(endTime); ; time.Sleep(10 * time.Millisecond) {
		free, err := lock.TryExclusive()
		if err != nil || free {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the WireGuard process of another router, %d, does not end", is.PID)
		}
	}
}

// start starts the process. It outlives this one.
func (t *tunnel) start(user, router *os.File, lock *store.FileLock) error {
	unpacked, err := programs.Programs(t.dirs)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(unpacked.InUse)
	socket, err := control.Listen(t.socket())
	if err != nil {
		return err
	}
	defer socket.Close()
	log, err := os.OpenFile(t.log(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of WireGuard: %w", err)
	}
	defer log.Close()
	cmd := control.Command(unpacked.Netstack, lock.File(), socket, router)
	cmd.Stderr = log
	cmd.Env = append(reexec.WithoutSystemd(reexec.Environ()), reexec.EnterEnv(protocol.EnterUserNS)...)
	if user != nil {
		reexec.PassFileEnv(cmd, protocol.EnvUserNS, user)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start WireGuard: %w", err)
	}
	hostdeps.StartScope(systemd.Scope{Name: "podrun-wireguard", Description: "podrun: pods of other nodes", PID: cmd.Process.Pid, Stop: hostdeps.ScopeStopMargin, Before: systemd.NodeUnit})
	go func() { _ = cmd.Wait() }() // its end is found by the lock
	return nil
}

// leave ends the host's part in the network of an earlier run. Pods keep the addresses that they have.
func (t *tunnel) leave(o *options) error {
	n, err := t.dirs.PodNetwork()
	if err != nil || len(n.CIDRs) == 0 {
		return err
	}
	if err := errors.Join(t.end(), removeRoutes(t.dirs)); err != nil {
		return err
	}
	others, err := t.dirs.SetPodNetwork(store.PodNetwork{})
	if len(others) > 0 {
		fmt.Fprintf(o.env.ErrOut, "podrun: pods have addresses of the cluster, at which other nodes do not reach them now: %s\n", names(others))
	}
	return err
}

// end ends the process of an earlier run.
func (t *tunnel) end() error {
	lock, err := store.OpenFileLock(t.lockFile())
	if err != nil {
		return err
	}
	defer lock.Close()
	free, err := lock.TryExclusive()
	if err != nil || free {
		return err
	}
	is, err := control.ReadIdentity(lock.File())
	if err == nil {
		err = endProcess(lock, is)
	}
	return err
}
