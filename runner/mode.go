package runner

import "github.com/podrun/podrun/pod"

// mode is how the pod reaches the world, now that it does.
func (s *sandbox) mode() pod.NetworkMode {
	switch {
	case s.host:
		return pod.NetworkHost
	case s.stack != nil:
		return pod.NetworkNetstack
	case s.leaves:
		return pod.NetworkMasquerade
	case s.egress != nil:
		return pod.NetworkTProxy
	}
	return pod.NetworkNone
}
