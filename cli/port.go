package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (f *front) portCommand() *cli.Command {
	return &cli.Command{
		Name:      "port",
		Usage:     "show the ports of this machine that lead to a pod",
		ArgsUsage: "POD",
		Description: `Prints one line for each port that the pod publishes by hostPort: the pod's port
and where it is open. A pod in the host's network publishes none: its ports are
the machine's own. Of Services of type NodePort podrun get services shows the
ports, which lead to all of their pods.

Examples:
  podrun port web
`,
		Flags:  []cli.Flag{namespaceFlag()},
		Action: f.port,
	}
}

func (f *front) port(c *cli.Context) error {
	if c.NArg() != 1 {
		return usageErrorf("port", "port takes the name of one pod")
	}
	_, plan, err := f.planned(c, c.Args().First())
	if err != nil {
		return err
	}
	for _, port := range plan.Published() {
		at, _, _ := strings.Cut(hostPortOf(port).String(), "/")
		if !port.HostAddr().IsValid() {
			at = "*:" + at
		}
		fmt.Fprintf(f.out, "%d/%s -> %s\n", port.Number, strings.ToLower(port.Protocol), at)
	}
	return nil
}
