package podup

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/hostport"
)

// openPorts opens the host ports of every pod that will be started, before anything is created. A port
// of a pod that is replaced still belongs to the old one, a port of Leaving to a pod that is removed first.
func (r *Run) openPorts() []error {
	var taken []pod.Port
	for _, old := range r.Leaving {
		taken = append(taken, portsOf(old)...)
	}
	return r.eachTarget(func(p *Target) error {
		if p.RanBefore() {
			return nil
		}
		if err := podutil.FillHostPorts(p.Object.Pod, freeHostPort); err != nil || p.Action != upplan.Create || requestsOneOf(p, taken) {
			return err
		}
		return r.reservePorts(p)
	})
}

// PortOwners returns the pods of the run that have a port which its manifests give to another of its pods.
func (r *Run) PortOwners() (owners []store.Pod) {
	for _, old := range r.Targets {
		theirs := portsOf(old.Pod)
		if slices.ContainsFunc(r.Targets, func(p *Target) bool { return p != old && requestsOneOf(p, theirs) }) {
			owners = append(owners, old.Pod)
		}
	}
	return owners
}

// portsOf returns the host ports of a pod that exists.
func portsOf(p store.Pod) []pod.Port {
	plan, err := p.Plan()
	if err != nil {
		return nil
	}
	return plan.Published()
}

// requestsOneOf reports whether a pod's manifest requests one of the ports.
func requestsOneOf(p *Target, ports []pod.Port) bool {
	return slices.ContainsFunc(ports, func(theirs pod.Port) bool {
		return slices.ContainsFunc(podutil.PublishedPorts(p.Object.Pod), theirs.Clashes)
	})
}

// refuseSharedPorts refuses pods of one command that use the same port.
func (r *Run) refuseSharedPorts() error {
	var errs []error
	for i, p := range r.Targets {
		for _, other := range r.Targets[:i] {
			if !p.RanBefore() {
				errs = append(errs, sharedPort(p, other))
			}
		}
	}
	return errors.Join(errs...)
}

// sharedPort returns an error if two pods of one command use the same port.
func sharedPort(p, other *Target) error {
	for _, a := range podutil.PublishedPorts(p.Object.Pod) {
		for _, b := range podutil.PublishedPorts(other.Object.Pod) {
			if a.Clashes(b) {
				return report.New(report.Usage, "give one of them another hostPort or hostIP", "pods %s and %s request the same port %s of the host", other.Pod.Name, p.Pod.Name, HostPortOf(a))
			}
		}
	}
	return nil
}

// freeHostPort returns a port of the host that no program has. Another one may take it before it is reserved: then the pod is
// refused.
func freeHostPort(c *corev1.Container, p *corev1.ContainerPort) (int32, error) {
	h := HostPortOf(podutil.PlanPort(c, &corev1.ContainerPort{ContainerPort: p.ContainerPort, Protocol: p.Protocol, HostIP: p.HostIP, HostPort: 1}))
	h.Number = 0 // the kernel chooses
	file, err := hostport.Bind(h)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	address, err := unix.Getsockname(int(file.Fd()))
	switch a := address.(type) {
	case *unix.SockaddrInet6:
		return int32(a.Port), nil
	case *unix.SockaddrInet4:
		return int32(a.Port), nil
	}
	return 0, err
}

// HostPortOf returns the host port that a pod publishes.
func HostPortOf(p pod.Port) hostport.Port {
	return hostport.Port{Protocol: strings.ToLower(p.Protocol), Addr: p.HostAddr(), Number: p.HostPort}
}

// reservePorts reserves the ports of a pod until the pod has them, all or none. Connections are refused until
// then.
func (r *Run) reservePorts(p *Target) error {
	if p.ports != nil {
		return nil
	}
	var errs []error
	p.ports = map[string]*os.File{}
	for _, port := range podutil.PublishedPorts(p.Object.Pod) {
		h := HostPortOf(port)
		file, err := hostport.Bind(h)
		if errors.Is(err, unix.EADDRINUSE) {
			if owner, theirs := r.portOwner(p.Pod, port); owner != "" {
				err = report.New(report.Failure, "podrun down "+owner+" frees it; or choose another hostPort or hostIP", "port %s of the host is used by pod %s, for its port %d", h, owner, theirs.Number)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.ports[h.String()] = file
	}
	if err := errors.Join(errs...); err != nil {
		p.closePorts()
		return err
	}
	return nil
}

func (t *Target) closePorts() {
	for _, file := range t.ports {
		file.Close()
	}
	t.ports = nil
}

// portOwner returns the running pod whose port is, or conflicts with, the requested one, and that port.
// The pod is in the form of a command-line argument.
func (r *Run) portOwner(asking store.Pod, port pod.Port) (string, pod.Port) {
	pods, err := r.Dirs.Pods()
	if err != nil {
		return "", pod.Port{}
	}
	for _, p := range pods {
		if !p.Alive() {
			continue
		}
		plan, err := p.Plan()
		if err != nil {
			continue
		}
		for _, theirs := range plan.Published() {
			if port.Clashes(theirs) {
				return podArgument(asking, p), theirs
			}
		}
	}
	return "", pod.Port{}
}

// podArgument returns a pod's name as command-line arguments, with -n if its namespace is not the
// namespace of the pod here.
func podArgument(here, p store.Pod) string {
	if p.Namespace == here.Namespace {
		return p.Name
	}
	return p.Name + " -n " + p.Namespace
}
