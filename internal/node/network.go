package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// Tunnel carries packets between the pods of this host and the pods of other nodes.
type Tunnel interface {
	// Set gives new pods addresses of the networks, and makes the peers reachable. While pods with other
	// addresses are running it returns an error. unreached is why some peers are not reached.
	Set(networks []netip.Prefix, peers []control.Peer) (unreached, err error)
	// Last returns what was set last, also by an earlier process.
	Last() (networks []netip.Prefix, peers []control.Peer, err error)
}

// Network is the node's part in the pod network of the cluster.
type Network struct {
	Tunnel   Tunnel
	Key      control.Key    // public; the zero Key if Routed
	Endpoint netip.AddrPort // at which other nodes reach this one
	Routed   bool           // the nodes route to each other's pods, by the addresses of the nodes; without WireGuard, and IPv4 only

	mu       sync.Mutex
	nodes    map[string]*corev1.Node
	listed   bool // the API server has sent the list of the nodes
	denied   error
	own      []netip.Prefix
	assigned chan struct{} // closed when pods may start
	problem  error         // why pods may not start, or why not all other nodes are reached
	wakeup   chan struct{}
	printed  map[string]report.LastError // of each node; "" is this node
}

// NewNetwork returns a network that has not been set up.
func NewNetwork(t Tunnel, key control.Key, endpoint netip.AddrPort) *Network {
	return &Network{Tunnel: t, Key: key, Endpoint: endpoint, nodes: map[string]*corev1.Node{}, assigned: make(chan struct{}), wakeup: make(chan struct{}, 1), printed: map[string]report.LastError{}}
}

// NewRoutedNetwork is NewNetwork for a node whose pods are routed. address is the node's.
func NewRoutedNetwork(t Tunnel, address netip.Addr) *Network {
	n := NewNetwork(t, control.Key{}, netip.AddrPortFrom(address, 0))
	n.Routed = true
	return n
}

// networkResync is the longest time between two updates of the network: the death of one of its processes changes no
// file.
const networkResync = 10 * time.Second

// run keeps the network up to date until ctx ends.
func (n *Network) run(ctx context.Context, a *Agent) {
	a.running.Go(func() { kubeapi.Watch[corev1.Node](ctx, a.Client, "/api/v1/nodes", "", &nodeHandler{n}) })
	for ctx.Err() == nil {
		n.print(a, "", n.update(a))
		timer := time.NewTimer(networkResync)
		select {
		case <-ctx.Done():
		case <-n.wakeup:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wake makes run update the network now.
func (n *Network) wake() {
	if n == nil {
		return
	}
	select {
	case n.wakeup <- struct{}{}:
	default:
	}
}

// print prints a problem of a node that differs from its last one.
func (n *Network) print(a *Agent, node string, err error) {
	last := n.printed[node]
	last.Print(a.ErrOut, err)
	n.printed[node] = last
}

// update sets the networks and the peers from the nodes of the cluster. While these are not known, what was set last
// stays.
func (n *Network) update(a *Agent) error {
	networks, peers, err := n.Tunnel.Last()
	if err != nil {
		return err
	}
	n.mu.Lock()
	self, listed, denied := n.nodes[a.Node.Name], n.listed, n.denied
	nodes := slices.Collect(maps.Values(n.nodes))
	n.mu.Unlock()
	if self == nil {
		self = a.Node.object()
	}
	routes, err := a.hostRoutes()
	if err != nil {
		return err
	}
	if self != nil {
		last := networks
		if networks, err = n.podCIDRs(self); err != nil {
			return n.finish(a, nil, err)
		}
		for _, p := range networks {
			if slices.Contains(last, p) {
				continue // the host may have a route to its pods
			}
			if err := checkNetwork(p, routes); err != nil {
				return n.finish(a, nil, fmt.Errorf("spec.podCIDRs of node %s: %w", self.Name, err))
			}
		}
	}
	if listed {
		var problems map[string]error
		peers, problems = n.peersOf(nodes, a.Node.Name, networks, routes)
		for _, name := range slices.Sorted(maps.Keys(problems)) {
			n.print(a, name, fmt.Errorf("pods of node %s are not reached: %w", name, problems[name]))
		}
		maps.DeleteFunc(n.printed, func(name string, _ report.LastError) bool { return name != "" && problems[name] == nil })
	}
	if len(networks) == 0 {
		return n.finish(a, nil, errNoCIDR)
	}
	unreached, err := n.Tunnel.Set(networks, peers)
	if err != nil {
		return n.finish(a, nil, err)
	}
	return n.finish(a, networks, errors.Join(denied, unreached))
}

var errNoCIDR = report.New(report.Failure, "kube-controller-manager has --allocate-node-cidrs and --cluster-cidr, or kubeadm init --pod-network-cidr", "the cluster has given this node no addresses for pods")

// finish records the result of an update, from which the node's condition follows. networks are the networks of the node's
// pods; nil if pods may not start.
func (n *Network) finish(a *Agent, networks []netip.Prefix, problem error) error {
	n.mu.Lock()
	changed := (n.problem == nil) != (problem == nil) || n.own == nil && networks != nil
	n.problem = problem
	if networks != nil {
		if n.own == nil {
			close(n.assigned)
		}
		n.own = networks
	}
	n.mu.Unlock()
	if changed {
		a.Node.wake()
	}
	return problem
}

// await returns when pods may start.
func (n *Network) await(ctx context.Context) error {
	if n == nil {
		return nil
	}
	select {
	case <-n.assigned:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// condition returns the node's condition NetworkUnavailable.
func (n *Network) condition() corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse}
	if n == nil {
		c.Reason, c.Message = "PodrunRouter", "pods reach each other on this node, and the network outside; pods of other nodes are not reached, except by hostPort and hostNetwork"
		return c
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	reached := "by WireGuard"
	c.Reason = "PodrunWireGuard"
	if n.Routed {
		c.Reason, reached = "PodrunRoutes", "by routes"
	}
	switch {
	case n.own == nil && n.problem != nil:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "PodNetworkNotReady", n.problem.Error()
	case n.own == nil:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "PodNetworkNotReady", "the pod network is being set up"
	case n.problem != nil:
		c.Message = "pods of other nodes may not be reached: " + n.problem.Error()
	default:
		c.Message = "pods of other nodes are reached " + reached
	}
	return c
}

// withClusterIPs returns the status of a pod with only the addresses that are in the node's networks, in the
// order of the networks. The other addresses are not unique in the cluster, and other nodes do not reach them.
func (n *Network) withClusterIPs(st *corev1.PodStatus) *corev1.PodStatus {
	if n == nil {
		return st
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	ips := st.PodIPs
	st = st.DeepCopy()
	st.PodIP, st.PodIPs = "", nil
	for _, c := range n.own {
		for _, ip := range ips {
			if a, err := netip.ParseAddr(ip.IP); err == nil && c.Contains(a) {
				st.PodIPs = append(st.PodIPs, ip)
			}
		}
	}
	if len(st.PodIPs) > 0 {
		st.PodIP = st.PodIPs[0].IP
	}
	return st
}

// nodeHandler receives the nodes of the cluster.
type nodeHandler struct{ *Network }

// essential returns the parts of a node that the network needs: the rest is large, and the status changes often.
func essential(o *corev1.Node) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, CreationTimestamp: o.CreationTimestamp}}
	n.Spec.PodCIDR, n.Spec.PodCIDRs, n.Status.Addresses = o.Spec.PodCIDR, o.Spec.PodCIDRs, o.Status.Addresses
	for _, name := range []string{annotationKey, annotationEndpoint} {
		if value, has := o.Annotations[name]; has {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, name, value)
		}
	}
	return n
}

// Replace implements kubeapi.Handler.
func (h *nodeHandler) Replace(nodes []*corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.nodes)
	for _, o := range nodes {
		h.nodes[o.Name] = essential(o)
	}
	h.listed, h.denied = true, nil
	h.wake()
}

// Event implements kubeapi.Handler.
func (h *nodeHandler) Event(kind watch.EventType, o *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, next := h.nodes[o.Name], essential(o)
	switch {
	case kind == watch.Deleted:
		delete(h.nodes, o.Name)
	case equality.Semantic.DeepEqual(old, next):
		return
	default:
		h.nodes[o.Name] = next
	}
	h.wake()
}

// Failed implements kubeapi.Handler. The watch of the pods reports that the API server cannot be reached.
func (h *nodeHandler) Failed(err error) {
	if apierrors.IsForbidden(err) {
		h.mu.Lock()
		h.denied = report.New(report.Failure, "permit it: kubectl create clusterrole podrun-peers --verb=list,watch --resource=nodes; kubectl create clusterrolebinding podrun-peers --clusterrole=podrun-peers --group=system:nodes", "read the nodes of the cluster: %w", err)
		h.mu.Unlock()
		h.wake()
	}
}
