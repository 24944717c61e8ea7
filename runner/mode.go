package runner

import "github.com/podrun/podrun/pod"

// mode is how the pod reaches the world, now that it does.
func (n *network) mode() pod.NetworkMode {
	switch {
	case n.host:
		return pod.NetworkHost
	case n.stack != nil:
		return pod.NetworkNetstack
	case n.leaves:
		return pod.NetworkMasquerade
	case n.egress != nil:
		return pod.NetworkTProxy
	}
	return pod.NetworkNone
}
