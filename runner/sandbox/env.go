package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/volumes"
)

// maxEnvFile limits the size of a file of variables, which a container writes. The kubelet limits only the
// lines, to 64 KiB.
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

// listServices returns the Services whose addresses the pod has in variables: the Services of its namespace, and
// in a cluster the Service of the API server (kubelet: pkg/kubelet/kubelet_pods.go, getServiceEnvVarMap). A damaged
// record of a Service does not prevent a start.
func (s *Sandbox) listServices() (list []*pod.Object, err error) {
	if s.Plan.Cluster != nil {
		switch o, err := s.Pod.APIService(); {
		case err == nil:
			list = append(list, o)
		case !errors.Is(err, fs.ErrNotExist):
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if !s.Plan.ServiceLinks {
		return list, nil
	}
	services, err := s.Pod.Services()
	if !network.OnlyDamaged(err) {
		return nil, err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return append(list, services...), nil
}

// podField returns the value of a pod field that is known once the pod has its network.
func (s *Sandbox) podField(path string) (string, error) {
	switch path {
	case "status.podIP":
		return strings.Join(network.AddrStrings(s.Addresses()[:min(1, len(s.Addresses()))]), ""), nil
	case "status.podIPs":
		return strings.Join(network.AddrStrings(s.Addresses()), ","), nil
	case "status.hostIP":
		return s.HostIPs()[0], nil
	case "status.hostIPs":
		return strings.Join(s.HostIPs(), ","), nil
	}
	return "", fmt.Errorf("unknown field %s", path)
}
