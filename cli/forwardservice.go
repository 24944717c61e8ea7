package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// forwardTarget is the pod that the first word of port-forward names, and the ports in
// their numbers there. Of a Service the first ready pod is meant for as long as that lives,
// and the ports are the Service's (kubectl: pkg/cmd/portforward).
func (f *front) forwardTarget(dirs store.Dirs, namespace string, words []string) (store.Pod, []forwardedPort, error) {
	var behind *pod.Object
	var p store.Pod
	var plan *pod.Plan
	var err error
	kind, names, ok := objectWords(words[:1])
	if ok && kind == pod.KindService && strings.Contains(words[0], "/") {
		if behind, err = object(dirs, kind, namespace, names[0]); err == nil {
			p, err = readyPod(dirs, behind)
		}
	} else {
		p, err = f.podOf(dirs, namespace, words[0])
	}
	if err == nil {
		plan, err = p.Plan()
	}
	if err != nil {
		return p, nil, err
	}
	if words = words[1:]; behind != nil {
		if words, err = servicePortWords(behind, words); err != nil {
			return p, nil, err
		}
	}
	ports, err := forwardedPorts(plan, words)
	return p, ports, err
}

// readyPod is the first pod behind a Service.
func readyPod(dirs store.Dirs, o *pod.Object) (store.Pod, error) {
	if o.Service == nil || len(o.Service.Selector) == 0 {
		return store.Pod{}, report.New(report.Failure, "name a pod", "service %q is defined without a selector", o.Name)
	}
	all, err := behind(dirs, o)
	switch {
	case err != nil:
		return store.Pod{}, err
	case len(all) == 0:
		return store.Pod{}, report.New(report.Failure, "podrun get pods -o wide shows which pods are ready", "no ready pod is behind service %q", o.Name)
	}
	return all[0].place, nil
}

// backend is a pod behind a Service, and what others are told of it.
type backend struct {
	place store.Pod
	is    *pod.Presence
}

// behind are the pods to which a Service leads.
func behind(dirs store.Dirs, o *pod.Object) ([]backend, error) {
	s := o.Service
	if s == nil || len(s.Selector) == 0 {
		return nil, nil
	}
	places, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	var all []backend
	for _, p := range places {
		is, err := p.Endpoint()
		if err != nil || p.Namespace != o.Namespace || !p.Alive() || !is.Ready && !s.PublishNotReady {
			continue // nobody is told of it: it is ending, or has no network
		}
		chosen := true
		for k, v := range s.Selector {
			had, ok := is.Labels[k]
			chosen = chosen && ok && had == v
		}
		if chosen {
			all = append(all, backend{p, is})
		}
	}
	return all, nil
}

// servicePortWords puts ports of pods for those of a Service in LOCAL:REMOTE.
func servicePortWords(o *pod.Object, words []string) ([]string, error) {
	var list []string
	for _, word := range words {
		local, remote, both := strings.Cut(word, ":")
		if !both {
			remote = local
		}
		var of *pod.ServicePort
		for i, p := range o.Service.Ports {
			if remote != "" && (strconv.Itoa(int(p.Port)) == remote || p.Name == remote) {
				of = &o.Service.Ports[i]
			}
		}
		if of == nil {
			return nil, report.New(report.Usage, "podrun get services shows its ports", "service %q does not have a service port %s", o.Name, remote)
		}
		if of.Protocol != "TCP" {
			return nil, report.New(report.Usage, "", "port %s of service %s is %s: port-forward is for TCP", remote, o.Name, of.Protocol)
		}
		if !both {
			local = strconv.Itoa(int(of.Port))
		}
		to := of.TargetName
		if to == "" {
			to = strconv.Itoa(int(of.TargetPort))
		}
		list = append(list, fmt.Sprintf("%s:%s", local, to))
	}
	return list, nil
}
