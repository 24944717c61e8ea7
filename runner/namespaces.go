package runner

import (
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/pod"
)

// shared are the paths of the namespaces that the pod's containers share.
type shared struct{ net, ipc, uts string }

// ofKeeper are those that the keeper has made, or, in place of the network's, "" for the
// host's, in which the supervisor is.
func ofKeeper(plan *pod.Plan) shared {
	ns := shared{stage.PodNet, stage.PodIPC, stage.PodUTS}
	if plan.Network == pod.NetworkHost {
		ns.net = ""
	}
	return ns
}

// netFiles are the namespaces that a thread of the supervisor has to join to be in the
// pod's network.
func (s shared) netFiles() []string {
	if s.net == "" {
		return nil
	}
	return []string{s.net}
}
