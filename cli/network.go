package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

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
			errs = append(errs, pods[i].AskNetwork(c.String("network")))
		}
	}
	return errors.Join(errs...)
}
