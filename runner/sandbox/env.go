package sandbox

import (
	"fmt"
	"os"
	"strings"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/volumes"
)

// maxEnvFile limits a file of variables, which a container writes (kubelet: no limit; a line has at most 64
// KiB).
const maxEnvFile = 1 << 20

// EnvSources returns the sources to which the environments of the pod's containers refer.
func (s *Sandbox) EnvSources() environ.Sources {
	return environ.Sources{
		Object: s.Pod.Object, Services: s.listServices, Field: s.podField,
		File: func(volume, path string) ([]byte, error) {
			if v := s.Volume(volume); v != nil {
				return volumes.ReadFileIn(s.VolumePath(v), path, maxEnvFile)
			}
			return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", volume)
		},
	}
}

// listServices returns the Services of the pod's namespace. A damaged one does not prevent a start.
func (s *Sandbox) listServices() ([]*pod.Object, error) {
	list, err := s.Pod.Services()
	if !network.OnlyDamaged(err) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return list, nil
}

// podField returns the value of a pod field that is known once the pod has its network.
func (s *Sandbox) podField(path string) (string, error) {
	switch path {
	case "status.podIP":
		return strings.Join(network.AddrStrings(s.Addresses()[:min(1, len(s.Addresses()))]), ""), nil
	case "status.podIPs":
		return strings.Join(network.AddrStrings(s.Addresses()), ","), nil
	case "status.hostIP":
		return network.HostIPs()[0], nil
	case "status.hostIPs":
		return strings.Join(network.HostIPs(), ","), nil
	}
	return "", fmt.Errorf("unknown field %s", path)
}
