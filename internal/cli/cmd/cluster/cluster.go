// Package cluster has the command cluster: a Kubernetes cluster that runs as one pod of the user.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command cluster.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "cluster",
		Usage: "run a Kubernetes cluster as a pod",
		Description: `Creates and removes Kubernetes clusters, without root. A cluster is one pod: the
official images of the control plane, and podrun node in a container for each
node. kubectl, Helm and other clients use it as the context podrun-NAME.

The name of the cluster is podrun if none is given.

Examples:
  podrun cluster create
  kubectl --context podrun-podrun get nodes
  podrun cluster delete
`,
		Subcommands: []*cli.Command{
			createCommand(env), lsCommand(env), startCommand(env), stopCommand(env), deleteCommand(env),
			kubeconfigCommand(env), imagesCommand(env), loadCommand(env), logsCommand(env),
		},
	}
}

// defaultName is the name of a cluster without one, as kind's is kind.
const defaultName = "podrun"

// options are what all subcommands have.
type options struct {
	env     *cmdutil.Env
	command string
	words   []string
	name    string
}

// Complete reads the name.
func (o *options) Complete(c *cli.Context) error {
	o.command, o.words = "cluster "+c.Command.Name, c.Args().Slice()
	o.name = defaultName
	if len(o.words) > 0 {
		o.name = o.words[0]
	}
	return nil
}

// Validate checks that there is at most a name.
func (o *options) Validate() error {
	if len(o.words) > 1 {
		return o.refuse("%s accepts one name, not %q", o.command, o.words)
	}
	if err := controlplane.CheckName(o.name); err != nil {
		return o.refuse("%w", err)
	}
	return nil
}

// acceptsNoArguments returns an error if there are arguments.
func (o *options) acceptsNoArguments() error {
	if len(o.words) > 0 {
		return o.refuse("%s accepts no arguments: %q", o.command, o.words)
	}
	return nil
}

// refuse returns an error about the command line.
func (o *options) refuse(format string, args ...any) error {
	return cmdutil.UsageErrorf(o.command, format, args...)
}

// A home is the directory of a cluster's files.
type home struct{ dir string }

func (o *options) home() (home, store.Dirs, error) {
	dirs, err := o.env.Dirs()
	return home{dirs.ClusterDir(o.name)}, dirs, err
}

// cluster returns an existing cluster.
func (o *options) cluster() (controlplane.Cluster, error) {
	h, _, err := o.home()
	if err != nil {
		return controlplane.Cluster{}, err
	}
	return h.load()
}

// change runs do with an existing cluster, which no other command changes meanwhile.
func (o *options) change(do func(home, store.Dirs, controlplane.Cluster) error) error {
	h, dirs, err := o.home()
	if err != nil {
		return err
	}
	if _, err := h.load(); err != nil { // a lock would make its directory
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	c, err := h.load()
	if err != nil {
		return err
	}
	return do(h, dirs, c)
}

func (h home) record() string   { return filepath.Join(h.dir, "cluster.json") }
func (h home) manifest() string { return filepath.Join(h.dir, store.FileClusterPod) }

// load reads the record of an existing cluster.
func (h home) load() (c controlplane.Cluster, err error) {
	text, err := os.ReadFile(h.record())
	if errors.Is(err, fs.ErrNotExist) {
		return c, report.New(report.Failure, "podrun cluster ls lists the clusters", "there is no cluster %q", filepath.Base(h.dir))
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read the record of the cluster %s: %w", filepath.Base(h.dir), err)
	}
	return c, nil
}

// save writes the record. A cluster exists from then on.
func (h home) save(c controlplane.Cluster) error {
	text, err := json.Marshal(c)
	if err == nil {
		err = store.WriteFile(h.record(), text)
	}
	if err != nil {
		return fmt.Errorf("record the cluster %s: %w", c.Name, err)
	}
	return nil
}

// lock keeps other commands from changing the cluster until the lock is closed.
func (h home) lock() (*store.FileLock, error) {
	if err := os.MkdirAll(filepath.Dir(h.dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of clusters: %w", err)
	}
	return store.LockExclusive(h.dir + ".lock")
}
