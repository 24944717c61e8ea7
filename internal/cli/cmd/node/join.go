package node

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/report"
)

// newJoinCommand returns the command node join.
func newJoinCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "join",
		Usage:     "get a certificate as a node of a cluster",
		ArgsUsage: "HOST:PORT",
		Description: `Gets a certificate as a node of the Kubernetes cluster whose API server is at
HOST:PORT, with the options that kubeadm token create --print-join-command
prints.
podrun node then runs the node.

Examples:
  podrun node join 192.168.1.5:6443 --token TOKEN \
    --discovery-token-ca-cert-hash sha256:HEX
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "token", Usage: "the bootstrap `TOKEN` of the cluster"},
			&cli.StringSliceFlag{Name: "discovery-token-ca-cert-hash", Usage: "the `HASH` of the public key of the cluster's certificate authority: sha256:HEX"},
			&cli.BoolFlag{Name: "discovery-token-unsafe-skip-ca-verification", Usage: "join without a hash: everyone who has the token can pose as the API server"},
			nodeNameFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &joinOptions{env: env} }),
	}
}

// joinOptions are the command line of node join.
type joinOptions struct {
	env   *cmdutil.Env
	words []string
	name  string
	join  certs.JoinOptions
}

// Complete implements cmdutil.Command.
func (o *joinOptions) Complete(c *cli.Context) error {
	o.words, o.name = c.Args().Slice(), c.String("node-name")
	o.join = certs.JoinOptions{Token: c.String("token"), CACertHashes: c.StringSlice("discovery-token-ca-cert-hash"), UnsafeSkipCAVerification: c.Bool("discovery-token-unsafe-skip-ca-verification")}
	if o.name == "" {
		o.name = resource.NodeName()
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *joinOptions) Validate() error {
	switch {
	case len(o.words) != 1:
		return cmdutil.UsageErrorf("node join", "node join requires the API server's HOST:PORT")
	case o.join.Token == "":
		return cmdutil.UsageErrorf("node join", "node join requires --token")
	case o.name == "":
		return cmdutil.UsageErrorf("node join", "the name of this host is not valid for a node: use --node-name")
	}
	if err := checkName(o.name); err != nil {
		return cmdutil.UsageErrorf("node join", "--node-name: %w", err)
	}
	o.join.Endpoint = o.words[0]
	return nil
}

// Run implements cmdutil.Command.
func (o *joinOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Preflight(ctx, false)
	if err != nil {
		return err
	}
	s, err := openState(ctx, dirs)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := os.Stat(s.kubeconfig()); err == nil {
		return report.New(report.Failure, "podrun node leave leaves it", "this host has joined a cluster already")
	}
	config, err := certs.Join(ctx, o.join)
	if err != nil {
		return err
	}
	n := certs.Node{Name: o.name, Dir: s.certificates(), Report: func(err error) { report.Print(o.env.ErrOut, err) }}
	if err := certs.Bootstrap(ctx, config, n, s.kubeconfig()); err != nil {
		return err
	}
	fmt.Fprintf(o.env.Out, "node/%s joined %s: podrun node runs it\n", o.name, config.Server)
	return nil
}
