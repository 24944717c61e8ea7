package cli

import (
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// forwardedPorts reads [LOCAL:]REMOTE, where REMOTE may be the name of a port and LOCAL
// may be empty.
func forwardedPorts(plan *pod.Plan, words []string) ([]forwardedPort, error) {
	var list []forwardedPort
	for _, word := range words {
		local, remote, both := strings.Cut(word, ":")
		if !both {
			remote = local
		}
		var one forwardedPort
		var err error
		if one.remote, err = remotePort(plan, remote); err != nil {
			return nil, err
		}
		switch {
		case !both: // the same number, also of a name
			one.local = one.remote
		case local != "":
			if one.local, err = strconv.Atoi(local); err != nil || one.local < 0 || one.local > 65535 {
				return nil, usageErrorf("port-forward", "%q is no [LOCAL:]REMOTE: the local port is a number from 0 to 65535", word)
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func remotePort(plan *pod.Plan, word string) (int, error) {
	if n, err := strconv.Atoi(word); err == nil {
		if n < 1 || n > 65535 {
			return 0, usageErrorf("port-forward", "the remote port must be from 1 to 65535, not %d", n)
		}
		return n, nil
	}
	for _, p := range plan.Ports {
		if p.Name == word && word != "" {
			if p.Protocol != "TCP" {
				return 0, report.New(report.Usage, "", "port %s of pod %s is %s: port-forward is for TCP", word, plan.Name, p.Protocol)
			}
			return p.Number, nil
		}
	}
	return 0, report.New(report.Usage, "podrun get "+plan.Name+" -o yaml shows its ports", "pod %s does not have a named port %q", plan.Name, word)
}
