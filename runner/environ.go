package runner

import (
	"fmt"
	"os"
	"strings"

	"github.com/podrun/podrun/environ"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// maxEnvFile bounds a file of variables, which a container has written (kubelet: none;
// a line of it has at most 64 KiB).
const maxEnvFile = 1 << 20

// sources is where the references of the pod's containers lead.
func (s *sandbox) sources() environ.Sources {
	return environ.Sources{
		Object: s.store.Object, Services: s.services, Field: s.field,
		File: func(volume, path string) ([]byte, error) {
			if v := s.volumeNamed(volume); v != nil {
				return volumes.ReadFileIn(s.volumePath(v), path, maxEnvFile)
			}
			return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", volume)
		},
	}
}

// services are those of the pod's namespace. One that is damaged keeps no container from
// starting.
func (s *sandbox) services() ([]*pod.Object, error) {
	list, err := s.store.Services()
	if !known(err) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return list, nil
}

// field gives what is known of a pod once it has its network.
func (s *sandbox) field(path string) (string, error) {
	switch path {
	case "status.podIP":
		return strings.Join(texts(s.addresses()[:min(1, len(s.addresses()))]), ""), nil
	case "status.podIPs":
		return strings.Join(texts(s.addresses()), ","), nil
	case "status.hostIP":
		return hostIPs()[0], nil
	case "status.hostIPs":
		return strings.Join(hostIPs(), ","), nil
	}
	return "", fmt.Errorf("unknown field %s", path)
}
