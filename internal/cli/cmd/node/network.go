package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/nodes"
)

// newNetworkCommand returns the command node network, which only podrun cluster uses.
func newNetworkCommand() *cli.Command {
	return &cli.Command{
		Name:      "network",
		Usage:     "internal: execute a command in the network of a node",
		ArgsUsage: "NUMBER -- COMMAND [ARG...]",
		Description: `Executes a command in the network of a node of podrun cluster, and does not
return. Node 1 has the present network, in which it makes the bridge of all
nodes. Each of the others gets a network of its own on that bridge, and a /sys
of its own.

Examples:
  podrun node network 2 -- podrun node --pod-network routed
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &networkOptions{} }),
	}
}

// networkOptions are the command line of node network.
type networkOptions struct {
	words  []string
	number int
}

// Complete implements cmdutil.Command.
func (o *networkOptions) Complete(c *cli.Context) error {
	o.words = c.Args().Slice()
	return nil
}

// Validate implements cmdutil.Command.
func (o *networkOptions) Validate() (err error) {
	if os.Getpid() != 1 {
		return cmdutil.UsageErrorf("node network", "node network is for the first process of a container: it changes the network")
	}
	if len(o.words) < 3 || o.words[1] != "--" {
		return cmdutil.UsageErrorf("node network", "node network requires the number of a node and, after --, a command")
	}
	if o.number, err = strconv.Atoi(o.words[0]); err != nil || o.number < 1 || o.number > nodes.Last {
		return cmdutil.UsageErrorf("node network", "%q is no number of a node: use 1 to %d", o.words[0], nodes.Last)
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *networkOptions) Run(context.Context) error {
	path, err := exec.LookPath(o.words[2])
	if err != nil {
		return report.New(report.Usage, "", "find the command: %w", err)
	}
	runtime.LockOSThread() // the command keeps the namespaces of this thread
	if err := nodes.Enter(o.number); err != nil {
		return report.New(report.Host, "run it as root of the network, with the capabilities NET_ADMIN and SYS_ADMIN", "%w", err)
	}
	return fmt.Errorf("execute %s: %w", path, unix.Exec(path, o.words[2:], reexec.Environ()))
}
