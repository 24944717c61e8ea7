package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/internal/store"
)

func lsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Aliases: []string{"list"}, Usage: "list the clusters",
		Description: `Lists the clusters, with the names of their contexts and whether they run.

Examples:
  podrun cluster ls
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &lsOptions{options{env: env}} }),
	}
}

// lsOptions are the command line of cluster ls.
type lsOptions struct{ options }

// Validate implements cmdutil.Command.
func (o *lsOptions) Validate() error { return o.acceptsNoArguments() }

// Run implements cmdutil.Command.
func (o *lsOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	all, err := clusters(dirs)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "STATUS", "NODES", "KUBERNETES", "SERVER", "CONTEXT"}}
	for _, c := range all {
		status := "Stopped"
		if dirs.Pod(namespace, c.Pod()).Alive() {
			status = "Running"
		}
		rows = append(rows, []string{c.Name, status, strconv.Itoa(c.NodeCount), "v" + c.Version, c.Server(), c.Pod()})
	}
	return o.env.PrintTable(rows)
}

// clusters returns the clusters of the user, in the order of their names.
func clusters(dirs store.Dirs) (all []controlplane.Cluster, err error) {
	entries, err := os.ReadDir(dirs.ClusterDir(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the clusters: %w", err)
	}
	for _, e := range entries {
		h := home{dirs.ClusterDir(e.Name())}
		if _, err := os.Stat(h.record()); err != nil {
			continue // a lock, or what a killed create has left
		}
		c, err := h.load()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func kubeconfigCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "kubeconfig", Usage: "print the kubeconfig of a cluster", ArgsUsage: "[NAME]",
		Description: `Prints a kubeconfig of the cluster's administrator. --merge adds it to
$KUBECONFIG, or ~/.kube/config, as podrun cluster create does.

Examples:
  podrun cluster kubeconfig > dev.kubeconfig
  podrun cluster kubeconfig --merge
`,
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "merge", Usage: "add it to $KUBECONFIG, or ~/.kube/config, instead of printing it"}},
		Action: cmdutil.Action(func() cmdutil.Command { return &kubeconfigOptions{options: options{env: env}} }),
	}
}

// kubeconfigOptions are the command line of cluster kubeconfig.
type kubeconfigOptions struct {
	options
	merge bool
}

// Complete implements cmdutil.Command.
func (o *kubeconfigOptions) Complete(c *cli.Context) error {
	o.merge = c.Bool("merge")
	return o.options.Complete(c)
}

// Run implements cmdutil.Command.
func (o *kubeconfigOptions) Run(context.Context) error {
	c, err := o.cluster()
	if err != nil {
		return err
	}
	if o.merge {
		return o.mergeContext(c)
	}
	text, err := adminConf(c)
	if err != nil {
		return err
	}
	return o.env.WriteSafe(text)
}

func imagesCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "images", Usage: "list the images that a cluster needs",
		Description: `Prints the names of the images that a cluster needs. With --output, podrun pulls
the images that podrun image ls does not list yet, and writes all of them to an
archive. podrun image load reads the archive on a machine without a network.

Examples:
  podrun cluster images --kubernetes 1.36.3
  podrun cluster images --output cluster.tar
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubernetes", Value: controlplane.DefaultVersion, Usage: "the `VERSION` of Kubernetes"},
			&cli.BoolFlag{Name: "metrics-server", Usage: "also the image of metrics-server"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the images to this `FILE`, an archive"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &imagesOptions{options: options{env: env}} }),
	}
}

// imagesOptions are the command line of cluster images.
type imagesOptions struct {
	options
	version, output string
	metrics         bool
}

// Complete implements cmdutil.Command.
func (o *imagesOptions) Complete(c *cli.Context) error {
	o.version, o.output, o.metrics = c.String("kubernetes"), c.String("output"), c.Bool("metrics-server")
	return o.options.Complete(c)
}

// Validate implements cmdutil.Command.
func (o *imagesOptions) Validate() (err error) {
	if err := o.acceptsNoArguments(); err != nil {
		return err
	}
	if o.version, err = controlplane.ParseVersion(o.version); err != nil {
		return o.refuse("--kubernetes: %w", err)
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *imagesOptions) Run(context.Context) error {
	images := controlplane.Cluster{Version: o.version, MetricsServer: o.metrics}.AllImages()
	if o.output == "" {
		for _, name := range images {
			fmt.Fprintln(o.env.Out, name)
		}
		return nil
	}
	if err := o.pullMissing(images); err != nil {
		return err
	}
	return o.env.RunAgain(append([]string{"image", "save", "--output", o.output}, images...)...)
}

func loadCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "load", Usage: "give images to the nodes", ArgsUsage: "IMAGE...",
		Description: `The nodes of all clusters share the images of podrun image ls, so that nothing
is copied: load pulls the images that are missing there. An image that was built
or loaded is there already. podrun image load reads archives.

Examples:
  podrun cluster load localhost/web:1
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &loadOptions{options{env: env}} }),
	}
}

// loadOptions are the command line of cluster load.
type loadOptions struct{ options }

// Validate implements cmdutil.Command.
func (o *loadOptions) Validate() error {
	if len(o.words) == 0 {
		return o.refuse("cluster load requires the names of images")
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *loadOptions) Run(context.Context) error {
	return o.pullMissing(o.words)
}

// pullMissing pulls the images that are not there.
func (o *options) pullMissing(names []string) error {
	images, err := o.env.ImageStore()
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range names {
		if _, err := images.Resolve(name); err != nil { // pull reports what is wrong with a name
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return o.env.RunAgain(append([]string{"pull"}, missing...)...)
}
