package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// newLeaveCommand returns the command node leave.
func newLeaveCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "leave",
		Usage: "leave the cluster",
		Description: `Drains the node as podrun node drain does, stops podrun-node.service, and
removes from this host the node's certificate and the cluster's pods and
objects. Pods that you have started with podrun up stay. Then it deletes the
node from the cluster; if the API server does not permit that to the node
itself, the command prints what an administrator has to do.

With --force the node is not drained, and the API server need not answer.

Examples:
  podrun node leave
  podrun node leave --force
`,
		Flags: append(drainFlags(),
			&cli.BoolFlag{Name: "force", Usage: "do not drain the node: its pods end, and the API server need not answer"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &leaveOptions{drainOptions{env: env}} }),
	}
}

// leaveOptions are the command line of node leave.
type leaveOptions struct{ drainOptions }

// Run implements cmdutil.Command.
func (o *leaveOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	if _, err := os.Stat(stateOf(dirs).dir); errors.Is(err, fs.ErrNotExist) {
		return errNotJoined()
	}
	signals, quiet := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error { return o.leave(ctx, dirs) })
}

func (o *leaveOptions) leave(ctx context.Context, dirs store.Dirs) error {
	force := o.force
	o.force = false // of drain
	m, err := o.member(stateOf(dirs))
	if err != nil && !force {
		return err
	}
	stop, err := o.prepareStop(ctx, stateOf(dirs))
	if err != nil {
		return err
	}
	if !force {
		if err := o.drain(ctx, m, stop != nil); err != nil {
			return err
		}
	}
	if stop != nil {
		if err := stop(); err != nil {
			return err
		}
	}
	s, err := openState(ctx, dirs)
	if err != nil {
		return err
	}
	defer s.close()
	launcher, err := o.env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	e := &engine{env: o.env, dirs: dirs, launcher: launcher}
	if err := node.RemoveLocal(ctx, e, node.Records(s.pods()), o.grace); err != nil {
		return err
	}
	if err := e.deleteObjects(ctx); err != nil {
		return err
	}
	o.deleteNode(ctx, m)
	if err := errors.Join(os.RemoveAll(s.dir), os.RemoveAll(dirs.ClusterLogDir())); err != nil {
		return fmt.Errorf("remove the node's directories: %w", err)
	}
	return nil
}

// prepareStop returns what stops the node's unit; nil if podrun node does not run. A podrun node that is no unit is
// refused.
func (o *leaveOptions) prepareStop(ctx context.Context, s *state) (stop func() error, err error) {
	running, err := s.isRunning()
	if err != nil || !running {
		return nil, err
	}
	other := report.New(report.Failure, "podrun node drain moves its pods; then stop it, and leave", "podrun node runs, but not as %s", systemd.NodeUnit)
	manager, err := systemd.ConnectOwn(ctx)
	if err != nil { // there is no unit
		return nil, other
	}
	if state, _, err := manager.Active(ctx, systemd.NodeUnit); err != nil || state != "active" {
		manager.Close()
		return nil, other
	}
	return func() error {
		defer manager.Close()
		if _, err := manager.Disable(ctx, systemd.NodeUnit); err != nil {
			return err
		}
		if err := manager.Stop(ctx, systemd.NodeUnit); err != nil {
			return err
		}
		fmt.Fprintf(o.env.Out, "%s stopped: podrun systemd uninstall podrun-node removes it\n", systemd.NodeUnit)
		return nil
	}, nil
}

// deleteTime limits the deletion of the node from the cluster.
const deleteTime = 30 * time.Second

// deleteNode deletes the node from the cluster. The node authorizer of Kubernetes does not permit that to the node;
// a cluster may have other rules.
func (o *leaveOptions) deleteNode(ctx context.Context, m *member) {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	name, err := "NAME", errors.New("its certificate cannot be read")
	if m != nil {
		name, err = m.name, m.client.Delete(ctx, "/api/v1/nodes/"+url.PathEscape(m.name), nil)
	}
	if err == nil {
		fmt.Fprintf(o.env.Out, "node/%s left the cluster\n", name)
		return
	}
	fmt.Fprintln(o.env.ErrOut, report.Escape(fmt.Sprintf("podrun: the cluster still has the node: %v", err)))
	fmt.Fprintf(o.env.Out, "node/%s left the cluster; an administrator completes that: kubectl delete node %[1]s\n", name)
}
