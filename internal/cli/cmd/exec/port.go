package exec

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
)

// NewPortCommand returns the command port.
func NewPortCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "port",
		Usage:     "show the host ports that are forwarded to a pod",
		ArgsUsage: "POD",
		Description: `Prints one line for each port that the pod publishes by hostPort: the pod's port
and the address that is forwarded to it. A pod in the host's network publishes
none: its ports are the machine's own. podrun get services shows the ports of
Services of type NodePort, which are forwarded to all of their pods.

Examples:
  podrun port web
`,
		Flags:  []cli.Flag{cmdutil.NamespaceFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &portOptions{env: env} }),
	}
}

type portOptions struct {
	env       *cmdutil.Env
	namespace string
	words     []string
}

func (o *portOptions) Complete(c *cli.Context) error {
	o.namespace, o.words = c.String("namespace"), c.Args().Slice()
	return nil
}

func (o *portOptions) Validate() error {
	if len(o.words) != 1 {
		return cmdutil.UsageErrorf("port", "port requires the name of one pod")
	}
	return nil
}

func (o *portOptions) Run(context.Context) error {
	_, plan, err := resource.FindPodAndPlan(o.env, o.namespace, o.words[0])
	if err != nil {
		return err
	}
	for _, port := range plan.Published() {
		address, _, _ := strings.Cut(podup.HostPortOf(port).String(), "/")
		if !port.HostAddr().IsValid() {
			address = "*:" + address
		}
		fmt.Fprintf(o.env.Out, "%d/%s -> %s\n", port.Number, strings.ToLower(port.Protocol), address)
	}
	return nil
}
