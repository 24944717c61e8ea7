package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
)

// endpointFile returns the file, in the pod's runtime directory, that publishes the pod to others.
// Only its supervisor writes it. The file of a pod that is not alive is ignored.
func (p Pod) endpointFile() string { return filepath.Join(p.runtime, "endpoint.json") }

// WriteEndpoint publishes the pod's endpoint.
func (p Pod) WriteEndpoint(is *pod.Endpoint) error {
	if err := writeJSON(WriteVolatile, p.endpointFile(), is); err != nil {
		return fmt.Errorf("publish the endpoint of pod %s: %w", p.Name, err)
	}
	return p.dirs.bumpVersion()
}

// EndpointVersion identifies a version of all published endpoints and Services. It changes with
// every one of them, except when a pod dies without removing its endpoint.
type EndpointVersion struct {
	inode uint64
	at    unix.Timespec
}

func (d Dirs) versionFile() string { return filepath.Join(d.Runtime, "endpoints.version") }

// EndpointVersion returns the current version.
func (p Pod) EndpointVersion() EndpointVersion {
	var st unix.Stat_t
	if unix.Stat(p.dirs.versionFile(), &st) != nil {
		return EndpointVersion{} // nothing has been published
	}
	return EndpointVersion{st.Ino, st.Mtim}
}

// bumpVersion changes the version.
func (d Dirs) bumpVersion() error {
	if err := WriteVolatile(d.versionFile(), nil); err != nil {
		return fmt.Errorf("publish the change: %w", err)
	}
	return nil
}

// Endpoint returns the pod's published endpoint; fs.ErrNotExist if there is none.
func (p Pod) Endpoint() (*pod.Endpoint, error) {
	var is pod.Endpoint
	if err := readJSON(p.endpointFile(), &is); err != nil {
		return nil, fmt.Errorf("read the endpoint of pod %s: %w", p.Name, err)
	}
	return &is, nil
}

// RemoveEndpoint unpublishes the pod.
func (p Pod) RemoveEndpoint() error {
	if err := os.Remove(p.endpointFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the endpoint of pod %s: %w", p.Name, err)
	}
	return p.dirs.bumpVersion()
}

// Peer is a living pod of the user with its endpoint.
type Peer struct {
	Namespace, Name string
	pod.Endpoint
}

// IsExhausted reports whether an error is a lack of descriptors or memory in this process, so that
// nothing is known about the file.
func IsExhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// Peers returns the user's living pods that have an endpoint, including this one.
func (p Pod) Peers() ([]Peer, error) {
	pods, err := p.dirs.Pods()
	if err != nil {
		return nil, err
	}
	var all []Peer
	for _, other := range pods {
		n, lives, err := other.peer()
		if err != nil {
			return nil, fmt.Errorf("read the endpoint of pod %s: %w", other.Name, err)
		}
		if lives {
			all = append(all, n)
		}
	}
	return all, nil
}

// peer returns the pod as a Peer if it is alive. It ignores a damaged endpoint, because its
// supervisor will write it again. The error is one of IsExhausted.
func (p Pod) peer() (n Peer, lives bool, err error) {
	n.Namespace, n.Name = p.Namespace, p.Name
	if err = readJSON(p.endpointFile(), &n.Endpoint); err == nil {
		lives, err = p.alive()
	}
	if !IsExhausted(err) {
		err = nil
	}
	return n, lives, err
}

// bumpVersionForService is bumpVersion if objects of the kind concern Services.
func (d Dirs) bumpVersionForService(kind pod.ObjectKind) error {
	if !kind.ConcernsServices() {
		return nil
	}
	return d.bumpVersion()
}

// Networks returns the networks of the addresses of pods and Services: from a living pod, else from
// the given Services that have addresses of podrun, else the default ones.
func (d Dirs) Networks(services []*pod.Object) pod.Networks {
	for p, err := range d.EachPod() {
		if err != nil {
			break
		}
		if l, err := p.Lease(); err == nil && len(l.Addresses) > 1 && p.Alive() {
			return l.Networks()
		}
	}
	var addresses []netip.Addr
	for _, o := range services {
		if o.Service == nil || o.IsFromCluster() || o.Service.Headless() {
			continue
		}
		for _, text := range o.Service.ClusterIPs {
			if a, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, a)
			}
		}
	}
	return pod.NetworksOf(addresses)
}

// LockServices takes the lock of the process that programs the router for Services and policies. It is on disk
// like the lock of LockSharedResources, but separate, so that starting pods need not wait for it.
func (p Pod) LockServices() (*FileLock, error) {
	return LockExclusive(filepath.Join(p.dirs.Data, "services.lock"))
}

// AllServices returns the Services of all namespaces, the user's and the cluster's.
func (p Pod) AllServices() (all []*pod.Object, damaged error) {
	for _, d := range []Dirs{p.dirs.ofUser(), p.dirs.OfCluster()} {
		list, err := d.Objects(pod.KindService, "")
		if err != nil && !errors.As(err, new(CorruptError)) {
			return nil, err
		}
		all, damaged = append(all, list...), errors.Join(damaged, err)
	}
	return all, damaged
}

// HadServices reports whether there is, or was, a Service.
func (p Pod) HadServices() bool {
	for _, d := range []Dirs{p.dirs.ofUser(), p.dirs.OfCluster()} {
		if dir, err := d.kindDir(pod.KindService); err == nil && isDir(dir) {
			return true
		}
	}
	return false
}

// AllEndpoints returns the user's Endpoints and EndpointSlices of all namespaces. If some are damaged, it returns the
// others and a CorruptError.
func (p Pod) AllEndpoints() (all []*pod.Object, damaged error) {
	for _, kind := range []pod.ObjectKind{pod.KindEndpoints, pod.KindEndpointSlice} {
		list, err := p.dirs.ofUser().Objects(kind, "")
		all, damaged = append(all, list...), errors.Join(damaged, err)
	}
	return all, damaged
}

// AllNetworkPolicies returns the NetworkPolicies of all namespaces.
func (p Pod) AllNetworkPolicies() ([]*pod.Object, error) {
	return p.dirs.Objects(pod.KindNetworkPolicy, "")
}

// NamespaceObjects returns the stored Namespaces.
func (p Pod) NamespaceObjects() ([]*pod.Object, error) { return p.dirs.Objects(pod.KindNamespace, "") }

// HadNetworkPolicies reports whether there is, or was, a NetworkPolicy.
func (d Dirs) HadNetworkPolicies() bool {
	dir, err := d.kindDir(pod.KindNetworkPolicy)
	return err == nil && isDir(dir)
}

// HadNetworkPolicies is Dirs.HadNetworkPolicies of the pod's user.
func (p Pod) HadNetworkPolicies() bool { return p.dirs.HadNetworkPolicies() }

// PutService replaces a Service of the user.
func (p Pod) PutService(o *pod.Object) error { return p.dirs.ofUser().PutObject(o) }

// LockObjects is Dirs.LockObjects of the pod's user.
func (p Pod) LockObjects() (*FileLock, error) { return p.dirs.LockObjects() }
