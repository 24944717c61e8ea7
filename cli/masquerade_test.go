package cli

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// What only root's pods can have is refused before anything is made.
func TestMasqueradeIsRoots(t *testing.T) {
	plan := &pod.Plan{Name: "web", Network: pod.NetworkMasquerade}
	if err := refuseMasquerade(plan, 0); err != nil {
		t.Error(err)
	}
	err := refuseMasquerade(plan, 1000)
	if err == nil || !strings.Contains(err.Error(), "pod web asks for the network masquerade: only root") || !strings.Contains(report.Hint(err), "tproxy") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	plan.Network = pod.NetworkAuto
	if err := refuseMasquerade(plan, 1000); err != nil {
		t.Error(err)
	}
}

// The page of a pod says how it reaches the network, and why not in another way.
func TestNetworkWords(t *testing.T) {
	for want, st := range map[string]pod.Status{
		"auto (masquerade for root, or tproxy, or netstack where the kernel cannot)": {},
		"masquerade (the kernel leads packets out)":                                  {Network: pod.NetworkMasquerade},
		"tproxy (the kernel carries connections)":                                    {Network: pod.NetworkTProxy},
		"tproxy (the kernel carries connections; no masquerade: the host has a firewall)": {
			Network: pod.NetworkTProxy, NetworkWhy: "the host has a firewall"},
		"none": {Network: pod.NetworkNone},
	} {
		if got := networkWords(&pod.Plan{}, &st); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
