package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/podrun/podrun/environ"
	"github.com/podrun/podrun/internal/store"
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

// texts are addresses as they are written.
func texts(addresses []netip.Addr) []string {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	return list
}

// hostIPs are the machine's addresses towards others, as routes have it now; its own
// loopback where it has none.
func hostIPs() []string {
	var list []string
	// Nothing is sent: connecting a datagram socket looks up the route.
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		c, err := net.Dial("udp", to)
		if err != nil {
			continue
		}
		if addr, ok := c.LocalAddr().(*net.UDPAddr); ok {
			list = append(list, addr.IP.String())
		}
		c.Close()
	}
	if len(list) == 0 {
		return []string{"127.0.0.1"}
	}
	return list
}

// resolve finds out what is in the environment of the container, and leaves it to
// supervisors that follow where they could not find out again.
func (x *container) resolve(s *sandbox) (*environ.Environment, error) {
	e, err := environ.Resolve(s.plan, x.plan, s.sources())
	if err != nil {
		return nil, configError{err}
	}
	x.env, x.args = e.Env, e.Args
	if e.Fixed {
		return e, nil
	}
	b, err := json.Marshal(e.Env)
	if err == nil {
		err = store.WriteVolatile(x.envFile(s), b)
	}
	if err != nil {
		return nil, fmt.Errorf("record the environment: %w", err)
	}
	return e, nil
}

func (x *container) envFile(s *sandbox) string { return s.store.EnvFile(x.plan.Name, x.attempt) }

// adoptEnv is resolve for a container that runs.
func (x *container) adoptEnv(s *sandbox) {
	b, err := os.ReadFile(x.envFile(s))
	if err == nil && json.Unmarshal(b, &x.env) == nil {
		return
	}
	e, err := environ.Resolve(&pod.Plan{}, x.plan, environ.Sources{
		Object: func(pod.ObjectKind, string) (*pod.Object, error) { return nil, fs.ErrNotExist },
		Field:  func(string) (string, error) { return "", fs.ErrNotExist },
		File:   func(string, string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	if x.env = x.plan.Env; err == nil {
		x.env = e.Env
	}
}

func (x *container) dropEnv(s *sandbox) error {
	if err := os.Remove(x.envFile(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
