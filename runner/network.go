package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/pod"
)

// network is how a pod is connected: to the user's other pods by their router, and by it
// to the world. The zero network is that of a pod with its own loopback only.
type network struct {
	pool   netns.Pool
	slot   netns.Slot
	egress *egress.Egress // nil where nothing leads out
}

// wirePrefix begins the names of wires among the descriptors that the keeper holds.
const wirePrefix = "wire-"

// addresses are the pod's own; none without a network.
func (n *network) addresses() []netip.Addr {
	if n.slot == 0 {
		return nil
	}
	return n.pool.Usable(n.slot)
}

// connect makes the pod's network, if it is to have one.
func (s *sandbox) connect() error {
	if err := netns.LoopbackUp(s.net); err != nil {
		return fmt.Errorf("set up the pod's network: %w", err)
	}
	mode := s.plan.Network
	if s.router() == "" || mode != pod.NetworkAuto && mode != pod.NetworkTProxy {
		return nil
	}
	err := s.attach()
	if err == nil || mode != pod.NetworkAuto {
		return err
	}
	s.warnings = append(s.warnings, "the pod has no network but its own loopback: "+err.Error())
	return errors.Join(s.disconnect())
}

// router is the path of the router's network namespace; "" in a test without a keeper.
func (s *sandbox) router() string {
	if s.estate.keeper == nil {
		return ""
	}
	return stage.Router
}

// attach connects the pod to the router and begins to carry its traffic. The keeper has
// the wires before anything can come from the pod.
func (s *sandbox) attach() error {
	wires, err := s.lease()
	if err != nil {
		return err
	}
	for name, f := range wires {
		if err := s.estate.keeper.Watch(wirePrefix+name, f); err != nil {
			return errors.Join(err, wires.Close())
		}
	}
	return s.carry(wires)
}

// lease gets the pod its place in the router: the one that it had, or a free one.
func (s *sandbox) lease() (netns.Wires, error) {
	lock, err := s.store.ShareLock()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return nil, err
	}
	router := netns.OpenRouter(s.router())
	pool, err := router.Prepare()
	if err != nil {
		return nil, err
	}
	others, err := s.store.OtherLeases()
	if err != nil {
		return nil, err
	}
	taken := map[netns.Slot]bool{}
	for _, l := range others {
		taken[netns.Slot(l.Slot)] = true
	}
	want := netns.PreferredSlot(s.store.Namespace + "/" + s.store.Name)
	if had, err := s.store.Lease(); err == nil {
		want = netns.Slot(had.Slot)
	}
	slot, err := netns.FreeSlot(want, taken)
	if err != nil {
		return nil, err
	}
	taken[slot] = true
	if err := router.Sweep(taken); err != nil {
		fmt.Fprintln(os.Stderr, "remove what dead pods have left in the network:", err)
	}
	s.pool, s.slot = pool, slot
	if err := s.store.WriteLease(store.Lease{Slot: int(slot), Addresses: s.addresses()}); err != nil {
		return nil, err
	}
	if err := router.Attach(s.net, pool, slot); err != nil {
		return nil, err
	}
	return router.Wire(pool, slot)
}

// carry begins to carry the pod's traffic.
func (s *sandbox) carry(wires netns.Wires) (err error) {
	s.egress, err = egress.Serve(egress.Config{
		RouterNS: s.router(), Pool: s.pool, Slot: s.slot, HostLoopback: s.plan.HostLoopback,
	}, wires)
	return err
}

// reconnect is connect for what another supervisor has made: the pod's place is on record,
// the keeper has the wires. What is incomplete is made again.
func (s *sandbox) reconnect(take func(name string) (*os.File, bool)) error {
	wires := netns.Wires{}
	for _, name := range netns.WireNames {
		if f, ok := take(wirePrefix + name); ok {
			wires[name] = f
		}
	}
	had, err := s.store.Lease()
	if err != nil || len(wires) == 0 {
		return wires.Close() // it has none
	}
	if s.pool, err = netns.OpenRouter(s.router()).Pool(); err != nil {
		return errors.Join(err, wires.Close())
	}
	s.slot = netns.Slot(had.Slot)
	return s.carry(wires)
}

// disconnect undoes connect, whole or half.
func (s *sandbox) disconnect() error {
	if s.egress != nil {
		s.egress.Close()
		s.egress = nil
	}
	if s.router() == "" {
		return nil
	}
	for _, name := range netns.WireNames {
		s.estate.keeper.Drop(wirePrefix + name)
	}
	had, err := s.store.Lease()
	if s.slot = 0; err != nil {
		return nil // it has had no place
	}
	lock, err := s.store.ShareLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	return netns.OpenRouter(s.router()).Detach(netns.Slot(had.Slot))
}

// still stops taking what the pod sends, if nothing is under way: then it may doze. Else,
// or when it stays awake after all, the caller has resume called.
func (n *network) still() bool { return n.egress == nil || n.egress.Pause() }

func (n *network) resume() {
	if n.egress != nil {
		n.egress.Resume()
	}
}
