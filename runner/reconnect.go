package runner

import (
	"errors"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/pod"
)

// reconnect is connect for what another supervisor has made: the pod's place is on record,
// the keeper has the wires.
func (s *sandbox) reconnect(take func(name string) (*os.File, bool)) error {
	had, wires, err := s.regain(take)
	switch {
	case store.Blind(err):
		return errors.Join(err, wires.Close()) // the next supervisor may see
	case len(wires) > 0 && err != nil && !errors.Is(err, fs.ErrNotExist):
		s.warn("the pod has no network any more but its own loopback: " + err.Error())
	}
	if err != nil || len(wires) == 0 {
		return wires.Close() // it has none
	}
	if s.pool, err = netns.OpenRouter(s.router()).Pool(); err != nil {
		return errors.Join(err, wires.Close())
	}
	s.lives(had)
	if s.leaves {
		go s.mendWayOut()
	}
	s.crier.told, _ = s.store.Presence() // else it is told again
	return s.carry(wires)
}

// reconnectToRemove is reconnect for a sandbox that is being removed: some of its wires may
// have gone already, and nobody is left who sends.
func (s *sandbox) reconnectToRemove(take func(name string) (*os.File, bool)) error {
	had, wires, err := s.regain(take)
	if err == nil && len(wires) > 0 {
		s.pool = netns.Pool(pod.NetworksOf(had.Addresses))
		s.lives(had)
	}
	return wires.Close()
}

// regain takes the wires that the keeper has, and reads the pod's place, if it has one.
func (s *sandbox) regain(take func(name string) (*os.File, bool)) (store.Lease, netns.Wires, error) {
	wires := netns.Wires{}
	for _, name := range netns.WireNames {
		if f, ok := take(wirePrefix + name); ok {
			wires[name] = f
		}
	}
	had, err := s.store.Lease()
	return had, wires, err
}

// lives takes the pod's place in the network as it is on record.
func (s *sandbox) lives(had store.Lease) {
	s.slot, s.leaves, s.stays = netns.Slot(had.Slot), had.Leaves, had.Stays
}
