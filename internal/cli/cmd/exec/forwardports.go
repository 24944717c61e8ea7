package exec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// forwardedPorts parses [LOCAL:]REMOTE, where REMOTE may be the name of a port and LOCAL may be empty.
func forwardedPorts(plan *pod.Plan, words []string) ([]forwardedPort, error) {
	var list []forwardedPort
	for _, word := range words {
		local, remote, both := strings.Cut(word, ":")
		if !both {
			remote = local
		}
		var port forwardedPort
		var err error
		if port.remote, err = remotePort(plan, remote); err != nil {
			return nil, err
		}
		switch {
		case !both: // the same number on both sides, also for a name
			port.local = port.remote
		case local != "":
			if port.local, err = strconv.Atoi(local); err != nil || port.local < 0 || port.local > 65535 {
				return nil, cmdutil.UsageErrorf("port-forward", "%q is not [LOCAL:]REMOTE: the local port must be from 0 to 65535", word)
			}
		}
		list = append(list, port)
	}
	return list, nil
}

func remotePort(plan *pod.Plan, word string) (int, error) {
	if n, err := strconv.Atoi(word); err == nil {
		if n < 1 || n > 65535 {
			return 0, cmdutil.UsageErrorf("port-forward", "the remote port must be from 1 to 65535, not %d", n)
		}
		return n, nil
	}
	for _, p := range plan.Ports {
		if p.Name == word && word != "" {
			if p.Protocol != "TCP" {
				return 0, report.New(report.Usage, "", "port %s of pod %s is %s: port-forward supports TCP only", word, plan.Name, p.Protocol)
			}
			return p.Number, nil
		}
	}
	return 0, report.New(report.Usage, "podrun get "+plan.Name+" -o yaml shows its ports", "pod %s does not have a named port %q", plan.Name, word)
}

// forwardTarget returns the pod that the first word of port-forward names, and the ports with their
// numbers in the pod. For a Service it is the first ready pod, until that ends, and the ports are the
// Service's (kubectl: pkg/cmd/portforward).
func forwardTarget(env *cmdutil.Env, dirs store.Dirs, namespace string, words []string) (store.Pod, []forwardedPort, error) {
	var behind *pod.Object
	var p store.Pod
	var plan *pod.Plan
	var err error
	kind, names, ok := kindnames.ParseObjects(words[:1])
	if ok && kind == pod.KindService && strings.Contains(words[0], "/") {
		if behind, err = resource.FindObject(dirs, kind, namespace, names[0]); err == nil {
			p, err = readyPod(dirs, behind)
		}
	} else {
		p, err = resource.FindPod(env, dirs, namespace, words[0])
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

// readyPod returns the first ready pod behind a Service.
func readyPod(dirs store.Dirs, o *pod.Object) (store.Pod, error) {
	if o.Service == nil || len(o.Service.Selector) == 0 {
		return store.Pod{}, report.New(report.Failure, "name a pod", "service %q is defined without a selector", o.Name)
	}
	all, err := resource.EndpointsOf(dirs, o)
	switch {
	case err != nil:
		return store.Pod{}, err
	case len(all) == 0:
		return store.Pod{}, report.New(report.Failure, "podrun get pods -o wide shows which pods are ready", "service %q has no ready pod", o.Name)
	}
	return all[0].Pod, nil
}

// servicePortWords replaces a Service's ports in LOCAL:REMOTE by its pods' ports.
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
			return nil, report.New(report.Usage, "", "port %s of service %s is %s: port-forward supports TCP only", remote, o.Name, of.Protocol)
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
