package runner

import (
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/pod"
)

// shared are the paths of the namespaces that the pod's containers share; user is "" where
// it is the supervisor's.
type shared struct{ net, ipc, uts, user string }

// ofKeeper are those that the keeper has made, or, in place of the network's, "" for the
// host's, in which the supervisor is.
func ofKeeper(plan *pod.Plan) shared {
	ns := shared{stage.PodNet(), stage.PodIPC(), stage.PodUTS(), stage.PodUser()}
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
