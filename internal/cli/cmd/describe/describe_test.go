package describe

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestNetworkText checks the text of each network mode, with the reason why another mode is not used.
func TestNetworkText(t *testing.T) {
	for want, st := range map[string]pod.Status{
		"auto (masquerade for root, else tproxy, else netstack)": {},
		"masquerade (the kernel forwards packets)":               {Network: pod.NetworkMasquerade},
		"tproxy (the kernel forwards connections)":               {Network: pod.NetworkTProxy},
		"tproxy (the kernel forwards connections; no masquerade: the host has a firewall)": {
			Network: pod.NetworkTProxy, NetworkWhy: "the host has a firewall"},
		"none": {Network: pod.NetworkNone},
	} {
		if got := networkText(&pod.Plan{}, &st); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
