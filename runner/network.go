package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/names"
	"github.com/podrun/podrun/netns/stackproc"
	"github.com/podrun/podrun/pod"
)

// network is how a pod is connected: to the user's other pods by their router, and by it
// to the world. The zero network is that of a pod with its own loopback only.
type network struct {
	pool   netns.Pool
	slot   netns.Slot
	egress carrier // nil where nothing leads out

	stack *stackproc.Stack // egress, if it is one

	leaves bool   // what is sent by IPv4 leaves by the kernel, and does not come to egress
	stays  string // why not, where that was tried

	host     bool     // it is the host's own
	warnings []string // of making it

	names     *names.Resolver // nil where nobody answers for names
	directory directory
	crier     crier
}

// carrier takes what the pod sends to others than pods.
type carrier interface {
	Pause() bool // for a process that is about to end, if nothing is under way
	Resume()
	Close()
}

// wirePrefix begins the names of wires among the descriptors that the keeper holds.
const wirePrefix = "wire-"

// addresses are the pod's own, or the machine's in its network; none without a network.
func (n *network) addresses() []netip.Addr {
	if n.host {
		var list []netip.Addr
		for _, text := range hostIPs() {
			if a, err := netip.ParseAddr(text); err == nil {
				list = append(list, a)
			}
		}
		return list
	}
	if n.slot == 0 {
		return nil
	}
	return n.pool.Usable(n.slot)
}

// connect makes the pod's network, if it is to have one.
func (s *sandbox) connect() error {
	if s.net == "" {
		return nil
	}
	if err := netns.LoopbackUp(s.net); err != nil {
		return fmt.Errorf("set up the pod's network: %w", err)
	}
	if err := netns.OpenToUsers(s.net); err != nil { // before the manifest's sysctls, which win
		s.network.warnings = append(s.network.warnings, fmt.Sprintf("containers that are not root cannot listen on ports below 1024, or use ping: %v", err))
	}
	mode := s.plan.Network
	switch {
	case s.router() == "" || mode == pod.NetworkNone:
		return nil
	case mode == pod.NetworkNetstack:
		<-s.laid // a process of the network's would be in the way while the pod gets its cgroup
		return s.attach(mode)
	}
	err := s.attach(mode)
	if err == nil {
		return nil
	}
	if mode != pod.NetworkAuto {
		return errors.Join(err, s.leaveWayOut())
	}
	<-s.laid
	if derr := s.disconnect(); derr != nil {
		fmt.Fprintln(os.Stderr, derr)
	}
	if s.attach(pod.NetworkNetstack) == nil {
		s.network.warnings = append(s.network.warnings, fmt.Sprintf("the pod's network is a stack in user space, which takes more of the processor: %v (%s)", err, report.Hint(netns.WithCure(err))))
		return nil
	}
	s.network.warnings = append(s.network.warnings, fmt.Sprintf("the pod has no network but its own loopback: %v (%s)", err, report.Hint(netns.WithCure(err))))
	return s.disconnect()
}

// router is the path of the router's network namespace; "" in a test without a keeper.
func (s *sandbox) router() string {
	if s.estate.keeper == nil {
		return ""
	}
	return stage.Router()
}

// attach connects the pod to the router and begins to carry its traffic. The keeper has
// the wires before anything can come from the pod.
func (s *sandbox) attach(mode pod.NetworkMode) error {
	if err := s.store.RemovePresence(); err != nil { // an earlier life's
		return err
	}
	wires, err := s.lease(mode)
	if err != nil {
		return err
	}
	for name, f := range wires {
		if err := s.estate.keeper.Watch(wirePrefix+name, f); err != nil {
			return errors.Join(err, wires.Close())
		}
	}
	if err := s.carry(wires); err != nil {
		return err
	}
	s.crier.want(s.presence(s.plan, false))
	go func() { // before anybody can ask, and while the rest is made
		if err := s.tell(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	own := s.slot
	time.AfterFunc(tidyAfter, func() { s.sweep(own) })
	return nil
}

// tidyAfter is when the router is swept: by then most pods run, whose start it would slow
// down. A supervisor that has ended before leaves it to another.
const tidyAfter = time.Second

// sweep removes what pods that have gone have left in the router. It takes its time, for
// which nobody waits: neither the end of a pod nor the start of another.
func (s *sandbox) sweep(own netns.Slot) {
	if err := s.underLock(func(taken map[netns.Slot]bool) error {
		taken[own] = true
		return netns.OpenRouter(s.router()).Sweep(taken)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "remove what others have left in the network:", err)
	}
}

// underLock does something while nobody else changes the router, and tells which places in
// it are taken.
func (s *sandbox) underLock(f func(taken map[netns.Slot]bool) error) error {
	lock, err := s.store.ShareLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	others, err := s.store.OtherLeases()
	if err != nil {
		return err
	}
	taken := map[netns.Slot]bool{}
	for _, l := range others {
		taken[netns.Slot(l.Slot)] = true
	}
	return f(taken)
}

// lease gets the pod its place in the router: the one that it had, or a free one.
func (s *sandbox) lease(mode pod.NetworkMode) (wires netns.Wires, err error) {
	err = s.underLock(func(taken map[netns.Slot]bool) error {
		router, err := netns.OpenRouter(s.router()).Stay()
		if err != nil {
			return err
		}
		defer router.Leave()
		pool, err := router.Prepare()
		if err != nil {
			return err
		}
		want := netns.PreferredSlot(s.store.Namespace + "/" + s.store.Name)
		if had, err := s.store.Lease(); err == nil {
			want = netns.Slot(had.Slot)
		}
		slot, err := netns.FreeSlot(want, taken)
		if err != nil {
			return err
		}
		s.pool, s.slot = pool, slot
		mtu, err := s.wayOut(mode, router)
		if err == nil {
			err = s.writeLease(s.leaves)
		}
		if err != nil {
			return err
		}
		if err := router.Attach(s.net, pool, slot); err != nil {
			return err
		}
		switch {
		case mode == pod.NetworkNetstack:
			wires, err = router.WirePackets(pool, slot)
		case s.leaves:
			wires, err = router.WireOut(s.net, pool, slot, mtu)
		default:
			wires, err = router.Wire(pool, slot)
		}
		return err
	})
	return wires, err
}

// carry begins to carry the pod's traffic.
func (s *sandbox) carry(wires netns.Wires) (err error) {
	s.names = names.New(s.view, names.HostFile)
	c := egress.Config{RouterNS: s.router(), Pool: s.pool, Slot: s.slot, HostLoopback: s.plan.HostLoopback, Names: s.names}
	if wires[netns.WirePackets] != nil {
		stack, err := stackproc.Serve(stage.NetstackProgram(), c, wires)
		if err == nil {
			s.egress, s.stack = stack, stack
		}
		return err
	}
	served, err := egress.Serve(c, wires)
	if err == nil {
		s.egress = served
	}
	return err
}

// resolver is where the pod asks for names.
func (n *network) resolver() string {
	if n.stack != nil {
		return stackproc.Names.String()
	}
	return n.pool.Gateway().V4.String()
}

// disconnect undoes connect, whole or half. The pod's device goes with its network, and
// what is left in the router then others remove, or another sandbox of the pod uses it.
func (s *sandbox) disconnect() error {
	if s.egress != nil {
		s.egress.Close()
		s.egress, s.stack = nil, nil
	}
	if s.router() != "" {
		for _, name := range netns.WireNames {
			s.estate.keeper.Drop(wirePrefix + name)
		}
	}
	err := s.leaveWayOut()
	s.slot, s.leaves = 0, false
	return err
}

// still stops taking what the pod sends, if nothing is under way: then it may doze. Else,
// or when it stays awake after all, the caller has resume called.
func (n *network) still() bool { return n.egress == nil || n.egress.Pause() }

func (n *network) resume() {
	if n.egress != nil {
		n.egress.Resume()
	}
}
