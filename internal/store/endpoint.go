package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
)

// endpointFile is in the pod's runtime directory: what others are told of it, written by
// its supervisor alone. That of a pod that does not live any more tells nothing.
func (p Pod) endpointFile() string { return filepath.Join(p.runtime, "presence.json") }

// WriteEndpoint tells others of the pod.
func (p Pod) WriteEndpoint(is *pod.Presence) error {
	b, err := json.Marshal(is)
	if err == nil {
		err = WriteVolatile(p.endpointFile(), b)
	}
	if err != nil {
		return fmt.Errorf("tell others of pod %s: %w", p.Name, err)
	}
	return p.dirs.bumpVersion()
}

// EndpointVersion changes whenever what is told of pods and Services does, but for pods that die
// without a word.
type EndpointVersion struct {
	inode uint64
	at    unix.Timespec
}

func (d Dirs) versionFile() string { return filepath.Join(d.Runtime, "told") }

// EndpointVersion is the present one.
func (p Pod) EndpointVersion() EndpointVersion {
	var st unix.Stat_t
	if unix.Stat(p.dirs.versionFile(), &st) != nil {
		return EndpointVersion{} // nothing has been told
	}
	return EndpointVersion{st.Ino, st.Mtim}
}

// bumpVersion makes another.
func (d Dirs) bumpVersion() error {
	if err := WriteVolatile(d.versionFile(), nil); err != nil {
		return fmt.Errorf("tell that something has changed: %w", err)
	}
	return nil
}

// Endpoint is what others are told of the pod; fs.ErrNotExist if they are not.
func (p Pod) Endpoint() (*pod.Presence, error) {
	var is pod.Presence
	if err := readJSON(p.endpointFile(), &is); err != nil {
		return nil, fmt.Errorf("read what others are told of pod %s: %w", p.Name, err)
	}
	return &is, nil
}

// RemoveEndpoint tells others of the pod no more.
func (p Pod) RemoveEndpoint() error {
	if err := os.Remove(p.endpointFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tell others that pod %s has gone: %w", p.Name, err)
	}
	return p.dirs.bumpVersion()
}

// Peer is a living pod of the user.
type Peer struct {
	Namespace, Name string
	pod.Presence
}

// IsExhausted says that an error tells of who looks and not of what is there: there is no descriptor
// or no memory left to look with.
func IsExhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// Peers are the user's living pods that others are told of, this one among them.
func (p Pod) Peers() ([]Peer, error) {
	pods, err := p.dirs.Pods()
	if err != nil {
		return nil, err
	}
	var all []Peer
	for _, other := range pods {
		n, lives, err := other.peer()
		if err != nil {
			return nil, fmt.Errorf("read what is told of pod %s: %w", other.Name, err)
		}
		if lives {
			all = append(all, n)
		}
	}
	return all, nil
}

// peer is the pod as one of Neighbours, if it lives. What is damaged tells nothing: its
// supervisor writes it again. The error is a Blind one.
func (p Pod) peer() (n Peer, lives bool, err error) {
	n.Namespace, n.Name = p.Namespace, p.Name
	if err = readJSON(p.endpointFile(), &n.Presence); err == nil {
		lives, err = p.alive()
	}
	if !IsExhausted(err) {
		err = nil
	}
	return n, lives, err
}

// bumpVersionForService is stamp, if what has changed is a Service.
func (d Dirs) bumpVersionForService(kind pod.ObjectKind) error {
	if kind != pod.KindService {
		return nil
	}
	return d.bumpVersion()
}

// Networks are those that the addresses of pods and Services are from: of a living pod, or
// else of the Services, which are given.
func (d Dirs) Networks(services []*pod.Object) pod.Networks {
	for p, err := range d.EachPod() {
		if err != nil {
			break
		}
		if l, err := p.Lease(); err == nil && len(l.Addresses) > 1 && p.Alive() {
			return pod.NetworksOf(l.Addresses)
		}
	}
	for _, o := range services {
		if o.Service == nil || len(o.Service.ClusterIPs) < 2 {
			continue
		}
		a, err1 := netip.ParseAddr(o.Service.ClusterIPs[0])
		b, err2 := netip.ParseAddr(o.Service.ClusterIPs[1])
		if err1 == nil && err2 == nil {
			return pod.NetworksOf([]netip.Addr{a, b})
		}
	}
	return pod.DefaultNetworks
}

// ServicesLock is held alone by who makes the router lead to Services. It is on disk, as
// ShareLock is, which it is apart from: pods that start need not wait for it.
func (p Pod) ServicesLock() (*FileLock, error) {
	return OpenFileLock(filepath.Join(p.dirs.Data, "services.lock"))
}

// AllServices are the Services of all namespaces.
func (p Pod) AllServices() ([]*pod.Object, error) { return p.dirs.Objects(pod.KindService, "") }

// PutService replaces a Service.
func (p Pod) PutService(o *pod.Object) error { return p.dirs.PutObject(o) }

// LockObjects is that of the pod's user.
func (p Pod) LockObjects() (*FileLock, error) { return p.dirs.LockObjects() }
