package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// Networks between the pods of two nodes.
const (
	nodesPodrun = "podrun's WireGuard"
	nodesKernel = "the kernel's"
	nodesRoutes = "routes"
)

// tunnelMTU is the MTU of WireGuard on Ethernet, podrun's and flannel's.
const tunnelMTU = 1420

// node is one of the two hosts.
type node struct {
	ns, address string
	private     *ecdh.PrivateKey
}

// nodes connects pods of the two hosts in three ways: by podrun's WireGuard; by the kernel's, as flannel's
// backend wireguard does; and by routes alone, as its backend host-gw does. A kernel may have no WireGuard.
func (w *testbed) nodes() ([]network, error) {
	pair := []node{{ns: hostNS, address: hostAddr}, {ns: w.remote, address: remoteAddr}}
	for i := range pair {
		var err error
		if pair[i].private, err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
			return nil, err
		}
		if err := enable(pair[i].ns, "net.ipv4.ip_forward"); err != nil {
			return nil, err
		}
	}
	ours, err := w.podrunNodes(pair)
	if err != nil {
		return nil, err
	}
	routes, err := w.routedNodes(pair, nodesRoutes, 1500, func(i int, to string) error {
		return runCommand(inNamespace(pair[i].ns, "ip route add "+to+" via "+pair[1-i].address))
	})
	if err != nil {
		return nil, err
	}
	if out, err := command("ip link add wg0 type wireguard").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "netbench: no WireGuard of the kernel: %s", out)
		return []network{ours, routes}, nil
	}
	kernel, err := w.routedNodes(pair, nodesKernel, tunnelMTU, func(i int, to string) error { return w.kernelWireguard(pair, i, to) })
	return []network{ours, kernel, routes}, err
}

func enable(ns, sysctl string) error {
	return runCommand(inNamespace(ns, "sysctl -qw "+sysctl+"=1"))
}

// routedNodes makes a pod on each host, connected by a pair of devices. connect leads from host i to the network
// of the other's pods.
func (w *testbed) routedNodes(pair []node, name string, mtu int, connect func(i int, to string) error) (network, error) {
	second := map[string]int{nodesRoutes: 245, nodesKernel: 246}[name]
	of := func(i int, rest string) string { return fmt.Sprintf("10.%d.%d.%s", second, i+1, rest) }
	var pods []string
	for i, n := range pair {
		pod, err := w.namespace()
		if err != nil {
			return network{}, err
		}
		device := fmt.Sprintf("pod%d", second)
		for _, line := range []string{
			inNamespace(n.ns, fmt.Sprintf("ip link add %s mtu %d type veth peer name eth0 mtu %d netns %s", device, mtu, mtu, strings.Split(pod, "/")[2])),
			inNamespace(n.ns, "ip addr add "+of(i, "1/24")+" dev "+device), inNamespace(n.ns, "ip link set "+device+" up"),
			inNamespace(pod, "ip addr add "+of(i, "2/24")+" dev eth0"), inNamespace(pod, "ip link set eth0 up"),
			inNamespace(pod, "ip route add default via "+of(i, "1")),
		} {
			if err := runCommand(line); err != nil {
				return network{}, err
			}
		}
		if err := connect(i, of(1-i, "0/24")); err != nil {
			return network{}, err
		}
		pods = append(pods, pod)
	}
	return w.between(name, pods, of(1, "2"), func() []int { return nil })
}

// kernelWireguard leads from host i to the network of the other's pods.
func (w *testbed) kernelWireguard(pair []node, i int, to string) error {
	const port = 51830
	file := filepath.Join(w.dir, fmt.Sprintf("wireguard%d", i))
	text := func(key []byte) string { return base64.StdEncoding.EncodeToString(key) }
	if err := os.WriteFile(file, []byte(text(pair[i].private.Bytes())), 0o600); err != nil {
		return err
	}
	lines := []string{
		fmt.Sprintf("wg set wg0 listen-port %d private-key %s peer %s allowed-ips %s endpoint %s:%d", port, file, text(pair[1-i].private.PublicKey().Bytes()), to, pair[1-i].address, port),
		fmt.Sprintf("ip link set wg0 mtu %d up", tunnelMTU), "ip route add " + to + " dev wg0",
	}
	if i > 0 { // nodes has made the first
		lines = append([]string{"ip link add wg0 type wireguard"}, lines...)
	}
	for _, line := range lines {
		if err := runCommand(inNamespace(pair[i].ns, line)); err != nil {
			return err
		}
	}
	return nil
}

// podrunNodes makes a router with a pod for each host, and connects both as their agents do (podrun node). This
// program also runs WireGuard.
func (w *testbed) podrunNodes(pair []node) (network, error) {
	const slot, port = 7, 51820
	var pods, sockets []string
	var configs []control.Config
	var peers []control.Peer
	var address netip.Addr
	for i, n := range pair {
		ns, err := w.namespace()
		if err != nil {
			return network{}, err
		}
		r := router.Open(ns)
		pool, err := r.Prepare()
		if err != nil {
			return network{}, err
		}
		pool.NodeV4, pool.NodeMTU = netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1)), tunnelMTU
		pod, err := w.routerPod(r, pool, slot)
		if err != nil {
			return network{}, err
		}
		socket, err := w.startWireguard(n.ns, ns, i)
		if err != nil {
			return network{}, err
		}
		networks := []netip.Prefix{pool.NodeV4}
		peers = append(peers, control.Peer{PublicKey: control.Key(n.private.PublicKey().Bytes()), Endpoint: netip.AddrPortFrom(netip.MustParseAddr(n.address), port), Networks: networks})
		configs = append(configs, control.Config{PrivateKey: control.Key(n.private.Bytes()), Port: port, MTU: tunnelMTU, Own: networks})
		pods, sockets, address = append(pods, pod), append(sockets, socket), pool.Addresses(slot).V4
	}
	for i := range pair {
		configs[i].Peers = peers[1-i : 2-i]
		if err := control.Send(sockets[i], &configs[i]); err != nil {
			return network{}, err
		}
	}
	return w.between(nodesPodrun, pods, address.String(), func() []int { return processes("podrun", wireguardEntry) })
}

// routerPod attaches a new pod to a router. Nothing reads the descriptors of its other traffic.
func (w *testbed) routerPod(r router.Router, pool ipam.Pool, slot ipam.Slot) (string, error) {
	pod, err := w.namespace()
	if err != nil {
		return "", err
	}
	if err := r.Attach(pod, pool, slot); err != nil {
		return "", err
	}
	traffic, err := r.OpenTraffic(pool, slot)
	w.undo = append(w.undo, func() { traffic.Close() })
	return pod, err
}

// startWireguard starts the process between a host and a router, and returns the path of its socket.
func (w *testbed) startWireguard(host, routerNS string, i int) (string, error) {
	path := filepath.Join(w.dir, fmt.Sprintf("socket%d", i))
	lock, err := os.Create(filepath.Join(w.dir, fmt.Sprintf("lock%d", i)))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	socket, err := control.Listen(path)
	if err != nil {
		return "", err
	}
	defer socket.Close()
	ns, err := os.Open(routerNS)
	if err != nil {
		return "", err
	}
	defer ns.Close()
	cmd := control.Command("/proc/self/exe", lock, socket, ns)
	cmd.Stderr = os.Stderr
	if err := nsthread.Do(cmd.Start, host); err != nil {
		return "", err
	}
	w.children = append(w.children, cmd)
	return path, nil
}

// between starts the servers in the second of two pods, which the first one reaches at an address.
func (w *testbed) between(name string, pods []string, address string, pids func() []int) (network, error) {
	return network{name: name, ns: pods[0], out: address, parallel: true, pids: pids}, w.serve(pods[1])
}
