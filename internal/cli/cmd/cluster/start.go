package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

func startCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "start a stopped cluster", ArgsUsage: "[NAME]",
		Description: `Starts the cluster's pod again, with everything that it had, renews certificates
that end soon, waits until the nodes are ready, and writes the context as create
does.

Examples:
  podrun cluster start
`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "wait", Value: defaultWait, Usage: waitUsage},
			atBootFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &startOptions{options: options{env: env}} }),
	}
}

// waitUsage describes --wait.
const waitUsage = "wait until the nodes are ready, for at most this `DURATION`; 0s waits for the API server only"

func atBootFlag() cli.Flag {
	return &cli.BoolFlag{Name: "at-boot", Usage: "start the cluster at boot, too, by a unit of systemd; podrun cluster stop removes the unit"}
}

// startOptions are the command line of cluster start.
type startOptions struct {
	options
	wait   time.Duration
	atBoot bool
}

// Complete implements cmdutil.Command.
func (o *startOptions) Complete(c *cli.Context) error {
	o.wait, o.atBoot = c.Duration("wait"), c.Bool("at-boot")
	return o.options.Complete(c)
}

// Validate implements cmdutil.Command.
func (o *startOptions) Validate() error {
	if o.wait < 0 {
		return o.refuse("--wait must not be negative")
	}
	return o.options.Validate()
}

// Run implements cmdutil.Command.
func (o *startOptions) Run(ctx context.Context) error {
	signals, quiet := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		return o.change(func(h home, _ store.Dirs, c controlplane.Cluster) error {
			if err := o.start(ctx, h, c, o.atBoot, o.wait); err != nil {
				return err
			}
			return o.mergeContext(c)
		})
	})
}

// hasUnit reports whether a unit of systemd starts the cluster's pod at boot.
func (o *options) hasUnit(c controlplane.Cluster) bool {
	dirs, err := systemd.OwnUnitDirs(o.env.Getenv)
	if err != nil {
		return false // there is no directory of units
	}
	_, err = os.Stat(filepath.Join(dirs.Units, "podrun@"+c.Pod()+".service"))
	return err == nil
}

// start starts the pod of a cluster, at boot too if a unit does that already, and waits until its nodes are ready.
func (o *options) start(ctx context.Context, h home, c controlplane.Cluster, atBoot bool, wait time.Duration) error {
	if err := c.WriteCredentials(time.Now()); err != nil {
		return err
	}
	begin := time.Now()
	run := []string{"up", "--namespace", namespace, "--detach", h.manifest()}
	if atBoot || o.hasUnit(c) {
		run = []string{"systemd", "install", "--now", "--sdnotify=running", h.manifest()}
	}
	if err := o.env.RunAgain(run...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(wait, defaultWait), errNotReady)
	defer cancel()
	config, err := kubeapi.LoadKubeconfig(c.AdminConf())
	if err != nil {
		return err
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return err
	}
	err = until(ctx, func() error { return c.ApplyAddons(ctx, client) })
	if err == nil && wait > 0 {
		err = until(ctx, func() error { return nodesReady(ctx, client, c, begin) })
	}
	return err
}

var errNotReady = errors.New("it is not ready within the time of --wait")

// pollInterval is how often the API server is asked.
const pollInterval = 100 * time.Millisecond

// until calls try until it succeeds or ctx ends; then it returns the last error.
func until(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if sleep.For(ctx, pollInterval) != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errNotReady) {
				return fmt.Errorf("wait for the cluster: %w: %w", cause, err)
			}
			return ctx.Err()
		}
	}
}

// nodesReady returns an error that names a node that is not ready, or from which the API server has not heard since begin: what
// it knows is of an earlier run then.
func nodesReady(ctx context.Context, client *kubeapi.Client, c controlplane.Cluster, begin time.Time) error {
	for _, n := range c.Nodes() {
		var lease coordinationv1.Lease
		if err := client.Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+n.Name, &lease); err != nil {
			return err
		}
		if at := lease.Spec.RenewTime; at == nil || at.Time.Before(begin) {
			return fmt.Errorf("node %s has not started", n.Name)
		}
		var node corev1.Node
		if err := client.Get(ctx, "/api/v1/nodes/"+n.Name, &node); err != nil {
			return err
		}
		if reason := unready(&node); reason != "" {
			return fmt.Errorf("node %s: %s", n.Name, reason)
		}
	}
	var account corev1.ServiceAccount // without it no pod can be created
	return client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &account)
}

// unreadyTaints are the taints of a node that is not ready. Others are the user's: kubectl cordon, kubectl taint.
var unreadyTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable}

// unready returns why a node is not ready for pods; "" if it is.
func unready(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.Message
		}
	}
	if len(n.Status.Conditions) == 0 {
		return "it has no conditions yet"
	}
	for _, taint := range n.Spec.Taints {
		if slices.Contains(unreadyTaints, taint.Key) {
			return "it has the taint " + taint.Key
		}
	}
	return ""
}

// mergeContext writes the cluster's context into the user's kubeconfig.
func (o *options) mergeContext(c controlplane.Cluster) error {
	path, err := o.kubeconfigPath()
	if err != nil {
		return err
	}
	text, err := adminConf(c)
	if err != nil {
		return err
	}
	return kubeapi.MergeKubeconfig(path, text)
}

// adminConf returns the administrator's kubeconfig.
func adminConf(c controlplane.Cluster) ([]byte, error) {
	text, err := os.ReadFile(c.AdminConf())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the cluster: %w", err)
	}
	return text, nil
}

func stopCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "stop a cluster", ArgsUsage: "[NAME]",
		Description: `Stops the cluster's pod. Everything that the cluster has stays: podrun cluster
start starts it again.

Examples:
  podrun cluster stop
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &stopOptions{options{env: env}} }),
	}
}

// stopOptions are the command line of cluster stop.
type stopOptions struct{ options }

// Run implements cmdutil.Command.
func (o *stopOptions) Run(context.Context) error {
	return o.change(func(_ home, dirs store.Dirs, c controlplane.Cluster) error { return o.stop(dirs, c, "down") })
}

// stop ends the pod of a cluster, and the unit that would start it at boot. down is the command that removes the pod, with
// its flags.
func (o *options) stop(dirs store.Dirs, c controlplane.Cluster, down ...string) error {
	if o.hasUnit(c) {
		if err := o.env.RunAgain("systemd", "uninstall", c.Pod()); err != nil {
			return err
		}
	}
	if !dirs.Pod(namespace, c.Pod()).Exists() {
		return nil
	}
	return o.env.RunAgain(append(down, "--namespace", namespace, "pod/"+c.Pod())...)
}

// namespace has the pods and the claims of clusters.
const namespace = "default"

func deleteCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "delete", Aliases: []string{"rm"}, Usage: "remove a cluster", ArgsUsage: "[NAME]",
		Description: `Removes the cluster's pod and everything that the cluster has stored, also the
files of its PersistentVolumes, and its context in the file of $KUBECONFIG, or
~/.kube/config. The images stay.

Examples:
  podrun cluster delete
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &deleteOptions{options{env: env}} }),
	}
}

// deleteOptions are the command line of cluster delete.
type deleteOptions struct{ options }

// Run implements cmdutil.Command. A command that was killed can be repeated: the record is removed last.
func (o *deleteOptions) Run(context.Context) error { return o.change(o.remove) }

// remove removes everything that create has made.
func (o *deleteOptions) remove(h home, dirs store.Dirs, c controlplane.Cluster) error {
	if err := o.stop(dirs, c, "down", "--grace-period=0"); err != nil {
		return err
	}
	if err := o.env.RunAgain("delete", "--namespace", namespace, "--ignore-not-found", "pvc", "--selector", store.ClusterLabel+"="+c.Name); err != nil {
		return err
	}
	path, err := o.kubeconfigPath()
	if err == nil {
		err = kubeapi.RemoveFromKubeconfig(path, c.Pod())
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.KubernetesDir()); err != nil {
		return fmt.Errorf("remove the certificates of the cluster: %w", err)
	}
	for _, path := range []string{h.manifest(), h.record(), h.dir} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the files of the cluster: %w", err)
		}
	}
	fmt.Fprintf(o.env.Out, "cluster/%s deleted\n", c.Name)
	return nil
}

func logsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "show the output of the control plane and the nodes", ArgsUsage: "[NAME]",
		Description: `Shows what the containers of the cluster's pod print: podrun logs with the name
of the pod has more options.

Examples:
  podrun cluster logs
  podrun logs podrun-dev -c node-1 -f
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &logsOptions{options{env: env}} }),
	}
}

// logsOptions are the command line of cluster logs.
type logsOptions struct{ options }

// Run implements cmdutil.Command.
func (o *logsOptions) Run(context.Context) error {
	c, err := o.cluster()
	if err != nil {
		return err
	}
	return o.env.RunAgain("logs", "--namespace", namespace, "--all-containers", "--prefix", c.Pod())
}
