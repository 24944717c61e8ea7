package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func createCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create a cluster", ArgsUsage: "[NAME]",
		Description: `Creates a Kubernetes cluster, waits until its nodes are ready, and adds it to
the file of $KUBECONFIG, or ~/.kube/config, as the context podrun-NAME. Images
that are missing are pulled: podrun cluster images lists them. The nodes use the
images of podrun image ls.

--nodes 0 creates a control plane alone, which other machines join by podrun
node: it needs --api-address with this machine's address and port 6443.
--print prints the manifest of the cluster's pod. --config takes a changed one.

Examples:
  podrun cluster create
  podrun cluster create dev --nodes 3 --port 8080:30080
  podrun cluster create home --nodes 0 --api-address 192.168.1.5:6443
`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "nodes", Value: 1, Usage: "the `NUMBER` of nodes on this machine"},
			&cli.StringFlag{Name: "kubernetes", Value: controlplane.DefaultVersion, Usage: "the `VERSION` of Kubernetes"},
			&cli.StringFlag{Name: "config", Usage: "the manifest of the cluster's pod is in this `FILE`: a changed copy of what --print prints"},
			&cli.StringSliceFlag{Name: "port", Aliases: []string{"p"}, Usage: "a port of the host that leads to the first node: `[ADDRESS:]HOST:NODE[/udp]`"},
			&cli.StringFlag{Name: "api-address", Value: "127.0.0.1:0", Usage: "the `ADDRESS:PORT` of the API server on the host; port 0 is a free one"},
			&cli.DurationFlag{Name: "wait", Value: defaultWait, Usage: waitUsage},
			&cli.BoolFlag{Name: "metrics-server", Usage: "run metrics-server, for kubectl top"},
			atBootFlag(),
			&cli.BoolFlag{Name: "print", Usage: "print the manifest of the cluster's pod, and create nothing"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &createOptions{options: options{env: env}} }),
	}
}

// defaultWait is long enough for a board with a slow card.
const defaultWait = 5 * time.Minute

// createOptions are the command line of cluster create.
type createOptions struct {
	options
	wanted  controlplane.Cluster
	version string
	config  string
	clash   string // a flag that --config makes useless
	atBoot  bool
	ports   []string
	api     string
	wait    time.Duration
	print   bool
}

// Complete implements cmdutil.Command.
func (o *createOptions) Complete(c *cli.Context) error {
	o.wanted.NodeCount, o.version, o.config, o.ports = c.Int("nodes"), c.String("kubernetes"), c.String("config"), c.StringSlice("port")
	o.api, o.wait, o.print, o.atBoot = c.String("api-address"), c.Duration("wait"), c.Bool("print"), c.Bool("at-boot")
	o.wanted.MetricsServer = c.Bool("metrics-server")
	for _, name := range []string{"nodes", "kubernetes", "port", "api-address"} {
		if o.config != "" && c.IsSet(name) {
			o.clash = name
		}
	}
	return o.options.Complete(c)
}

// Validate implements cmdutil.Command.
func (o *createOptions) Validate() (err error) {
	if err := o.options.Validate(); err != nil {
		return err
	}
	o.wanted.Name = o.name
	if n := o.wanted.NodeCount; n < 0 || n > controlplane.MaxNodes {
		return o.refuse("--nodes must be from 0 to %d, not %d", controlplane.MaxNodes, n)
	}
	if o.wait < 0 {
		return o.refuse("--wait must not be negative")
	}
	if o.clash != "" {
		return o.refuse("--%s and --config are mutually exclusive: change the file", o.clash)
	}
	if o.wanted.Version, err = controlplane.ParseVersion(o.version); err != nil {
		return o.refuse("--kubernetes: %w", err)
	}
	api, err := netip.ParseAddrPort(o.api)
	if err != nil {
		return o.refuse("--api-address must be an address and a port, such as 127.0.0.1:6443, not %q", o.api)
	}
	o.wanted.APIAddress, o.wanted.APIPort = api.Addr().String(), int(api.Port())
	for _, text := range o.ports {
		p, err := parsePort(text)
		if err != nil {
			return o.refuse("--port: %w", err)
		}
		o.wanted.Ports = append(o.wanted.Ports, p)
	}
	if err := o.checkAlone(); err != nil {
		return o.refuse("--nodes 0 %w", err)
	}
	return nil
}

// checkAlone returns an error, which goes on from "a cluster without nodes", if a control plane that has no nodes of its own
// cannot be as wanted.
func (o *createOptions) checkAlone() error {
	ip, err := netip.ParseAddr(o.wanted.APIAddress)
	switch {
	case o.wanted.NodeCount > 0:
		return nil
	case err != nil || !ip.Is4() || ip.IsLoopback() || ip.IsUnspecified() || o.wanted.APIPort != controlplane.APIPort:
		return fmt.Errorf("requires --api-address with an IPv4 address at which other machines reach this one, and the port %d, such as 192.168.1.5:%[1]d", controlplane.APIPort)
	case len(o.wanted.Ports) > 0:
		return errors.New("and --port are mutually exclusive: a port leads to a node of this cluster")
	case o.wanted.MetricsServer:
		return errors.New("and --metrics-server are mutually exclusive: the API server does not reach pods of other machines")
	}
	return nil
}

// parsePort reads [ADDRESS:]HOST:NODE[/udp]. Without an address it is 127.0.0.1.
func parsePort(text string) (p controlplane.Port, err error) {
	port, err := manifest.ParsePublishedPort(text)
	if err == nil && port.Count != 1 {
		err = errors.New("write --port for each port of a range")
	}
	if err != nil {
		return p, fmt.Errorf("%q is not [ADDRESS:]HOST:NODE[/udp], such as 8080:30080: %w", text, err)
	}
	return controlplane.Port{HostAddress: cmp.Or(port.HostIP, "127.0.0.1"), Host: port.HostPort, Node: port.ContainerPort, Protocol: string(port.Protocol)}, nil
}

// Run implements cmdutil.Command.
func (o *createOptions) Run(ctx context.Context) error {
	h, dirs, err := o.home()
	if err != nil {
		return err
	}
	if err := o.decide(h, dirs); err != nil {
		return err
	}
	manifest, err := o.manifest()
	if err != nil {
		return err
	}
	if o.print {
		return o.env.WriteSafe(manifest)
	}
	signals, quiet := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error { return o.create(ctx, h, manifest) })
}

// decide completes the cluster with what this host gives it.
func (o *createOptions) decide(h home, dirs store.Dirs) error {
	podrun, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find podrun: %w", err)
	}
	o.wanted.Dir, o.wanted.Podrun, o.wanted.Images = h.dir, podrun, dirs.ImagesDir()
	o.wanted.Registries = o.registries()
	if o.wanted.APIPort != 0 {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.wanted.APIAddress, "0"))
	if err != nil {
		return fmt.Errorf("find a port for the API server: %w", err)
	}
	o.wanted.APIPort = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
}

// registries finds the settings of registries that the user's podrun has. The user may make a directory later.
func (o *createOptions) registries() (r controlplane.Registries) {
	const system = "/etc/containers"
	if info, err := os.Stat(system); err == nil && info.IsDir() {
		r.System = system
	}
	if config := o.env.ConfigHome(); filepath.IsAbs(config) {
		r.User = filepath.Join(config, "containers")
	}
	return r
}

// manifest returns the manifest of the cluster's pod, which is valid. A changed one says how many nodes there are, and where the
// API server is.
func (o *createOptions) manifest() ([]byte, error) {
	if o.config == "" {
		text, err := o.wanted.Manifest()
		if err == nil { // ports may be the same
			_, err = resource.Load([]resource.Source{{Name: "the cluster's manifest", Data: text, Namespace: namespace}})
		}
		return text, err
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the cluster: %w", err)
	}
	docs, err := resource.Load([]resource.Source{{Name: o.config, Data: text, Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	if len(docs.Pods) != 1 {
		return nil, o.wrongConfig("it has %d pods instead of one", len(docs.Pods))
	}
	if err := o.wanted.ReadPod(docs.Pods[0].Pod); err != nil {
		return nil, o.wrongConfig("%w", err)
	}
	if err := o.checkAlone(); err != nil {
		return nil, o.wrongConfig("a control plane without nodes %w", err)
	}
	for _, claim := range o.wanted.Claims() { // image prune and delete find them by the label
		if !slices.ContainsFunc(docs.Stored, func(s manifest.Object) bool {
			return s.Kind == string(pod.KindClaim) && s.Name() == claim && s.Value.GetLabels()[store.ClusterLabel] == o.name
		}) {
			return nil, o.wrongConfig("it has no PersistentVolumeClaim %s with the label %s: %s", claim, store.ClusterLabel, o.name)
		}
	}
	return text, nil
}

// wrongConfig returns an error about the file of --config.
func (o *createOptions) wrongConfig(format string, args ...any) error {
	return report.New(report.Usage, "podrun cluster create "+o.name+" --print prints a manifest that can be changed", "%s is not the manifest of the cluster %s: %w", o.config, o.name, fmt.Errorf(format, args...))
}

// create creates the cluster. What was made stays if that fails: its logs have the reason.
func (o *createOptions) create(ctx context.Context, h home, manifest []byte) (err error) {
	lock, err := h.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(h.record()); err == nil {
		return report.New(report.Failure, "podrun cluster delete "+o.name+" removes it", "the cluster %s exists already", o.name)
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the cluster: %w", err)
	}
	if err := os.MkdirAll(o.wanted.Images, 0o700); err != nil {
		return fmt.Errorf("make the directory of images: %w", err)
	}
	if err := store.WriteFile(h.manifest(), manifest); err != nil {
		return fmt.Errorf("write the manifest of the cluster: %w", err)
	}
	if err := h.save(o.wanted); err != nil {
		return err
	}
	err = o.start(ctx, h, o.wanted, o.atBoot, o.wait)
	if err == nil {
		err = o.mergeContext(o.wanted)
	}
	join := ""
	if err == nil && o.wanted.NodeCount == 0 {
		join, err = joinCommand(o.wanted)
	}
	if err == nil {
		fmt.Fprintf(o.env.Out, "cluster/%s created\nkubectl --context %s get nodes\n%s", o.name, o.wanted.Pod(), join)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(o.env.ErrOut, "podrun: podrun cluster logs %s shows what the control plane prints; podrun cluster delete %[1]s removes the cluster\n", o.name)
	}
	return err
}

// joinCommand returns the command by which a machine becomes a node. TOKEN is a bootstrap token, which the user makes.
func joinCommand(c controlplane.Cluster) (string, error) {
	text, err := os.ReadFile(c.Authority())
	if err != nil {
		return "", fmt.Errorf("read the authority of the cluster: %w", err)
	}
	hash, err := certs.KeyHash(text)
	if err != nil {
		return "", fmt.Errorf("read the authority of the cluster, %s: %w", c.Authority(), err)
	}
	return fmt.Sprintf("podrun node join %s:%d --token TOKEN --discovery-token-ca-cert-hash %s\n", c.APIAddress, c.APIPort, hash), nil
}

// kubeconfigPath returns the file that kubectl changes (kubectl: the first of $KUBECONFIG).
func (o *options) kubeconfigPath() (string, error) {
	if path, _, _ := strings.Cut(o.env.Getenv("KUBECONFIG"), string(os.PathListSeparator)); path != "" {
		return path, nil
	}
	home := o.env.Getenv("HOME")
	if home == "" {
		return "", errors.New("find the kubeconfig: neither KUBECONFIG nor HOME is set")
	}
	return filepath.Join(home, ".kube", "config"), nil
}
