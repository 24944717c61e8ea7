package cli

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/pod"
)

// openPorts opens the host's ports of every pod that is to be started, before anything is
// made. Those of a pod that has to make way first are still its own.
func (l *launch) openPorts() error {
	var errs []error
	for i, p := range l.pods {
		if p.running {
			continue
		}
		for _, other := range l.pods[:i] {
			errs = append(errs, sharedPort(p, other))
		}
		if !p.replaces {
			errs = append(errs, l.open(p))
		}
	}
	return errors.Join(errs...)
}

// sharedPort refuses two pods of one command that ask for the same port.
func sharedPort(p, other *upPod) error {
	for _, a := range podutil.PublishedPorts(p.object.Pod) {
		for _, b := range podutil.PublishedPorts(other.object.Pod) {
			if a.Clashes(b) {
				return report.New(report.Usage, "give one of them another hostPort or hostIP", "pods %s and %s ask for the same port %s of the host", other.place.Name, p.place.Name, hostPortOf(a))
			}
		}
	}
	return nil
}

func hostPortOf(p pod.Port) hostport.Port {
	return hostport.Port{Protocol: strings.ToLower(p.Protocol), Addr: p.HostAddr(), Number: p.HostPort}
}

// open makes the ports of a pod ours until it has them, all or none. Connections are
// refused until then.
func (l *launch) open(p *upPod) error {
	if p.ports != nil {
		return nil
	}
	var errs []error
	p.ports = map[string]*os.File{}
	for _, port := range podutil.PublishedPorts(p.object.Pod) {
		h := hostPortOf(port)
		file, err := hostport.Bind(h)
		if errors.Is(err, unix.EADDRINUSE) {
			if owner, theirs := l.owner(p.place, port); owner != "" {
				err = report.New(report.Failure, "podrun down "+owner+" frees it; or choose another hostPort or hostIP", "port %s of the host is pod %s's, for its port %d", h, owner, theirs.Number)
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

func (p *upPod) closePorts() {
	for _, file := range p.ports {
		file.Close()
	}
	p.ports = nil
}

// owner is the living pod that has a port, or one that keeps others from it, as its name
// is typed.
func (l *launch) owner(asking store.Pod, port pod.Port) (string, pod.Port) {
	pods, err := l.dirs.Pods()
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
				return typed(asking, p), theirs
			}
		}
	}
	return "", pod.Port{}
}

// typed is how a pod is named where another's namespace is the usual one.
func typed(here, p store.Pod) string {
	if p.Namespace == here.Namespace {
		return p.Name
	}
	return p.Name + " -n " + p.Namespace
}
