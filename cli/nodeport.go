package cli

import (
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/pod"
)

// givePorts gives a Service its ports of the machine. One that it names must be free, or
// another's pods have it, which is found out among the Services.
func givePorts(k kept, all []*pod.Object) error {
	if k.object.Service == nil || !k.object.Service.Type.OpensPorts() {
		return nil
	}
	for _, p := range k.object.Service.Ports {
		if p.NodePort == 0 {
			continue
		}
		if err := freePort(p.Protocol, int(p.NodePort)); err != nil {
			return report.New(report.Failure, "ss -lnp shows by which; leave nodePort out, and podrun chooses a free one", "cannot keep %s: %w", nameOf(k.object), err)
		}
	}
	if err := k.object.GivePorts(all, freePort); err != nil {
		return report.New(report.Usage, "leave nodePort out, and podrun chooses a free one", "cannot keep %s: %w", nameOf(k.object), err)
	}
	return nil
}

// freePort says whether no program has a port but pods of the user's own, which share it.
func freePort(protocol string, port int) error {
	file, err := hostport.Bind(hostport.Port{Protocol: strings.ToLower(protocol), Number: port, Shared: true})
	if err != nil {
		return err
	}
	return file.Close()
}
