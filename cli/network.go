package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// checkNetwork refuses what --network cannot be.
func checkNetwork(c *cli.Context) error {
	if mode := c.String("network"); c.IsSet("network") && !slices.Contains(pod.NetworkModes, mode) {
		return usageErrorf("up", "--network cannot be %q: it is one of %s", mode, strings.Join(pod.NetworkModes, ", "))
	}
	return nil
}

// askNetwork gives pods that do not say the network that --network asks for.
func askNetwork(c *cli.Context, pods []manifest.Object) error {
	if !c.IsSet("network") {
		return nil
	}
	var errs []error
	for i := range pods {
		if pods[i].Pod != nil {
			errs = append(errs, manifest.SetNetwork(&pods[i], c.String("network")))
		}
	}
	return errors.Join(errs...)
}

// refuseMasquerade refuses what only root's pods can have.
func refuseMasquerade(plan *pod.Plan, uid int) error {
	if plan.Network != pod.NetworkMasquerade || uid == 0 {
		return nil
	}
	return report.New(report.Failure, "run the pod as root, or with another network: podrun up --network tproxy",
		"pod %s asks for the network %s: only root may change the host's network", plan.Name, plan.Network)
}
