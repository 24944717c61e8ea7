package node

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// newDrainCommand returns the command node drain.
func newDrainCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "drain",
		Usage: "move the cluster's pods to other nodes",
		Description: `Cordons this node, so that the cluster places no more pods on it, and evicts
its pods as kubectl drain does, with the node's own certificate: a
PodDisruptionBudget delays that, and the pods of DaemonSets stay. podrun node
has to run. kubectl uncordon lets the cluster use the node again.

Examples:
  podrun node drain
  podrun node drain --timeout 5m --grace-period 30
`,
		Flags: append(drainFlags(),
			&cli.BoolFlag{Name: "force", Usage: "evict also pods without a controller, which nothing creates again"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &drainOptions{env: env} }),
	}
}

// drainFlags are the flags of commands that drain the node.
func drainFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "the API server and the node's certificate are in this `FILE`, by default the file of podrun node join"},
		&cli.DurationFlag{Name: "timeout", Usage: "give up after this `DURATION` (90s, 5m); by default never"},
		&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "the pods have this many `SECONDS` to stop, instead of their own grace periods"},
	}
}

// drainOptions are the command line of node drain.
type drainOptions struct {
	env        *cmdutil.Env
	command    string
	words      []string
	kubeconfig string
	timeout    time.Duration
	grace      *int64
	force      bool
}

// Complete implements cmdutil.Command.
func (o *drainOptions) Complete(c *cli.Context) error {
	o.command, o.words, o.kubeconfig, o.timeout, o.force = "node "+c.Command.Name, c.Args().Slice(), c.String("kubeconfig"), c.Duration("timeout"), c.Bool("force")
	if c.IsSet("grace-period") {
		o.grace = new(c.Int64("grace-period"))
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *drainOptions) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf(o.command, "%s takes no arguments: %s", o.command, strings.Join(o.words, " "))
	case o.timeout < 0:
		return cmdutil.UsageErrorf(o.command, "--timeout must not be negative")
	case o.grace != nil && *o.grace < 0:
		return cmdutil.UsageErrorf(o.command, "--grace-period must not be negative")
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *drainOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	signals, quiet := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		s := stateOf(dirs)
		m, err := o.member(s)
		if err != nil {
			return err
		}
		running, err := s.isRunning()
		if err != nil {
			return err
		}
		return o.drain(ctx, m, running)
	})
}

// member is this host as a node of a cluster.
type member struct {
	name, server string
	client       *kubeapi.Client
}

// member reads the node's certificate and where the API server is.
func (o *drainOptions) member(s *state) (*member, error) {
	path := o.kubeconfig
	if path == "" {
		path = s.kubeconfig()
	}
	config, err := kubeapi.LoadKubeconfig(path)
	if errors.Is(err, fs.ErrNotExist) && o.kubeconfig == "" {
		return nil, errNotJoined()
	}
	if err != nil {
		return nil, err
	}
	name, err := nodeOf(config)
	if err != nil {
		return nil, err
	}
	client, err := kubeapi.NewClient(config)
	return &member{name: name, server: config.Server, client: client}, err
}

// drain drains the node. Unless podrun node runs, there must be no pods to evict: nothing would report their end.
func (o *drainOptions) drain(ctx context.Context, m *member, running bool) error {
	d := &node.Drain{Client: m.client, Name: m.name, Grace: o.grace, Limit: o.timeout, Force: o.force, Out: o.env.Out}
	if !running {
		pods, err := d.Pods(ctx)
		if err != nil {
			return err
		}
		if len(pods) > 0 {
			return report.New(report.Failure, "start podrun node first", "podrun node does not run here: nothing would report to the cluster when the node's %d pods end", len(pods))
		}
	}
	return d.Run(ctx)
}
