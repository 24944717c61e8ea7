// Package node is the command node: this host as a node of a Kubernetes cluster.
package node

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podmetrics"
	manifestvalidation "github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/memory"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/node/eviction"
	"github.com/podrun/podrun/internal/node/server"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/router"
)

// NewCommand returns the command node.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "node",
		Usage:     "run the pods of a Kubernetes cluster on this host",
		ArgsUsage: "[COMMAND]",
		Description: `Registers this host as a node of a Kubernetes cluster (1.34 or later) and runs
the pods that the cluster's scheduler places on it, without root and without a
kubelet, until it gets a signal. The pods keep running then, and the next
podrun node takes them over. Pods that you start with podrun up run beside them;
the cluster does not see them.

A host joins with podrun node join, once. The cluster's pods reach its Services
if the node may read EndpointSlices: kubectl create clusterrolebinding
podrun-nodes --clusterrole=system:node-proxier --group=system:nodes. Your pods
reach them with the annotation podrun.dev/cluster-services: "true". Pods of
other nodes are reached only if both nodes have --pod-network wireguard, which
is experimental; otherwise give those pods a hostPort or hostNetwork.

Examples:
  podrun node join 192.168.1.5:6443 --token TOKEN \
    --discovery-token-ca-cert-hash sha256:HEX
  podrun node
  podrun node --node-labels place=attic
`,
		Subcommands: []*cli.Command{newJoinCommand(env), newDrainCommand(env), newLeaveCommand(env), newNetworkCommand()},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubeconfig", Usage: "the API server and the node's certificate are in this `FILE`, by default the file of podrun node join"},
			&cli.StringFlag{Name: "bootstrap-kubeconfig", Usage: "request the node's certificate with the token in this `FILE`, unless there is one"},
			nodeNameFlag(),
			&cli.StringSliceFlag{Name: "node-ip", Usage: "an `ADDRESS` at which the cluster reaches the host, by default the source of the route to the API server"},
			&cli.StringSliceFlag{Name: "node-labels", Usage: "labels of the node: `KEY=VALUE`"},
			&cli.StringSliceFlag{Name: "register-with-taints", Usage: "taints of the node when it is registered for the first time: `KEY=VALUE:EFFECT`"},
			&cli.Int64Flag{Name: "max-pods", Value: 110, Usage: "the `NUMBER` of pods that the cluster may place here"},
			&cli.IntFlag{Name: "port", Value: server.Port, Usage: "the `PORT` of the kubelet's API, at which the API server reaches the node; 0 is a free one"},
			&cli.StringFlag{Name: "client-ca-file", Usage: "the authorities in this `FILE` certify the clients of the kubelet's API, by default the API server's"},
			&cli.StringSliceFlag{Name: "cluster-dns", Usage: "the `ADDRESSES` of the cluster's name servers for pods; without them podrun answers the names of Services"},
			&cli.StringFlag{Name: "cluster-domain", Value: pod.DefaultClusterDomain, Usage: "the `DOMAIN` of the cluster's names, by default cluster.local"},
			&cli.StringFlag{Name: "pod-network", Value: podNetworkNone, Usage: "the `NETWORK` in which pods of other nodes are reached: none, routed (by root only), or wireguard (experimental)"},
			&cli.IntFlag{Name: "wireguard-port", Value: wireguardPort, Usage: "the UDP `PORT` of --pod-network wireguard, which other nodes reach"},
			&cli.BoolFlag{Name: "load-balancer", Usage: "give the node's address to Services of type LoadBalancer without a class that have none; needs --pod-network routed"},
			&cli.StringSliceFlag{Name: "system-reserved", Usage: "`RESOURCE=QUANTITY` of cpu, memory and ephemeral-storage that the cluster's pods may not request"},
			&cli.StringSliceFlag{Name: "kube-reserved", Usage: "likewise `RESOURCE=QUANTITY`, in addition"},
			&cli.StringSliceFlag{Name: "eviction-hard", Value: cli.NewStringSlice(eviction.Defaults()...), Usage: "evict pods while `SIGNAL<QUANTITY` holds, by default " + strings.Join(eviction.Defaults(), ", ")},
			cmdutil.UnsafeSysctlFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of node.
type options struct {
	env        *cmdutil.Env
	words      []string
	kubeconfig string
	bootstrap  string
	name       string
	addresses  []string
	labels     []string
	taints     []string
	maxPods    int64
	port       int
	clientCA   string
	sysctls    []string
	cluster    pod.Cluster
	reserved   map[string][]string // by flag
	thresholds []string

	loadBalancer  bool
	podNetwork    string
	wireguardPort int

	unsafe manifestvalidation.UnsafeSysctls
	node   node.Registration
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.words, o.kubeconfig, o.bootstrap, o.name = c.Args().Slice(), c.String("kubeconfig"), c.String("bootstrap-kubeconfig"), c.String("node-name")
	o.addresses, o.labels, o.taints = c.StringSlice("node-ip"), c.StringSlice("node-labels"), c.StringSlice("register-with-taints")
	o.maxPods, o.port, o.sysctls = c.Int64("max-pods"), c.Int("port"), c.StringSlice("allow-unsafe-sysctl")
	o.clientCA = c.String("client-ca-file")
	o.reserved, o.thresholds = map[string][]string{}, c.StringSlice("eviction-hard")
	for _, flag := range reservingFlags {
		o.reserved[flag] = c.StringSlice(flag)
	}
	o.cluster.Domain = c.String("cluster-domain")
	for _, list := range c.StringSlice("cluster-dns") {
		o.cluster.DNS = append(o.cluster.DNS, strings.Split(list, ",")...)
	}
	o.podNetwork, o.wireguardPort, o.loadBalancer = c.String("pod-network"), c.Int("wireguard-port"), c.Bool("load-balancer")
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	refuse := func(format string, args ...any) error { return cmdutil.UsageErrorf("node", format, args...) }
	switch {
	case len(o.words) > 0:
		return refuse("node takes no arguments: %s", strings.Join(o.words, " "))
	case o.kubeconfig != "" && o.bootstrap != "":
		return refuse("--kubeconfig and --bootstrap-kubeconfig are mutually exclusive")
	case o.port < 0 || o.port > math.MaxUint16:
		return refuse("--port: %d is no port", o.port)
	case !slices.Contains([]string{podNetworkNone, podNetworkRouted, podNetworkTunnel}, o.podNetwork):
		return refuse("--pod-network: %q is none of none, routed and wireguard", o.podNetwork)
	case o.loadBalancer && o.podNetwork != podNetworkRouted:
		return refuse("--load-balancer requires --pod-network routed")
	case o.wireguardPort < 1 || o.wireguardPort > math.MaxUint16:
		return refuse("--wireguard-port: %d is no port", o.wireguardPort)
	case o.maxPods < 1:
		return refuse("--max-pods: %d is not positive", o.maxPods)
	}
	if err := checkName(o.name); err != nil {
		return refuse("--node-name: %w", err)
	}
	for flag, list := range map[string][]string{"node-ip": o.addresses, "cluster-dns": o.cluster.DNS} {
		for _, ip := range list {
			if net.ParseIP(ip) == nil {
				return refuse("--%s: %q is no IP address", flag, ip)
			}
		}
	}
	if bad := validation.IsDNS1123Subdomain("hostmaster." + o.cluster.Domain); len(bad) > 0 { // a name below it
		return refuse("--cluster-domain: %q is no domain: %s", o.cluster.Domain, bad[0])
	}
	if err := o.parse(); err != nil {
		return refuse("%w", err)
	}
	return nil
}

// parse reads the values that describe the node.
func (o *options) parse() (err error) {
	o.node = node.Registration{Addresses: o.addresses, MaxPods: o.maxPods}
	if o.node.Labels, err = parseLabels(o.labels); err != nil {
		return fmt.Errorf("--node-labels: %w", err)
	}
	if o.node.Taints, err = parseTaints(o.taints); err != nil {
		return fmt.Errorf("--register-with-taints: %w", err)
	}
	if o.unsafe, err = manifestvalidation.ParseUnsafeSysctls(o.sysctls); err != nil {
		return fmt.Errorf("--allow-unsafe-sysctl: %w", err)
	}
	o.node.Pressure, err = parsePressure(o.reserved, o.thresholds)
	return err
}

// parseLabels reads labels of the form KEY=VALUE.
func parseLabels(words []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no value: use KEY=VALUE", w)
		}
		if bad := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(bad) > 0 {
			return nil, fmt.Errorf("%q: %s", w, bad[0])
		}
		labels[key] = value
	}
	return labels, nil
}

// parseTaints reads taints of the form KEY=VALUE:EFFECT or KEY:EFFECT.
func parseTaints(words []string) (taints []corev1.Taint, err error) {
	for _, w := range words {
		start, effect, ok := strings.Cut(w, ":")
		key, value, _ := strings.Cut(start, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%q: use KEY=VALUE:EFFECT, with the effect NoSchedule, PreferNoSchedule or NoExecute", w)
		}
		if bad := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(bad) > 0 {
			return nil, fmt.Errorf("%q: %s", w, bad[0])
		}
		taints = append(taints, t)
	}
	return taints, nil
}

// shrinkAfter is the time without changes of pods after which the agent shrinks. It has reported them then.
const shrinkAfter = 5 * time.Second

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) error {
	if os.Getpid() == 1 {
		return o.runAsFirst()
	}
	dirs, err := o.env.Preflight(ctx, false)
	if err != nil {
		return err
	}
	files, err := openState(ctx, dirs)
	if err != nil {
		return err
	}
	defer files.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	go func() {
		if _, ok := <-arrived; ok {
			cancel()
		}
	}()
	o.node.Facts = (&factReader{env: o.env, dirs: dirs, kinds: func() ([]cdi.Kind, error) { return admission.DeviceKinds(o.env.Getenv) }}).facts
	if err := o.node.Check(); err != nil {
		return report.New(report.Usage, "reduce one of them", "%w", err)
	}
	id, err := o.identify(ctx, files)
	if err != nil {
		return err
	}
	clientCA, err := o.clientAuthorities(id.config.CA)
	if err != nil {
		return err
	}
	var via *routes
	if o.node.Network, via, err = o.network(dirs, files); err != nil {
		return err
	}
	if err := dirs.MakeClusterLogDir(); err != nil {
		return err
	}
	launcher, err := o.env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", fmt.Sprint(o.port)))
	if err != nil {
		return report.New(report.Host, "--port gives another one", "open the port of the kubelet's API: %w", err)
	}
	defer listener.Close()
	o.node.Port = int32(listener.Addr().(*net.TCPAddr).Port)
	e := &engine{env: o.env, dirs: dirs, launcher: launcher, sysctls: o.sysctls, cluster: &o.cluster, routes: via, allocatable: o.node.Allocatable, changed: memory.NewShrinker(shrinkAfter, 8<<10).Touch}
	if via != nil {
		via.changed = func() { e.updateServices(ctx) }
	}
	agent := &node.Agent{Client: id.client, Engine: e, Node: &o.node, Records: node.Records(files.pods()), Sysctls: o.unsafe, LogDir: dirs.ClusterLogDir(), LoadBalancer: o.loadBalancer, ErrOut: o.env.ErrOut, Routes: router.HostNetworks}
	reached := &reach{agent, e, &podmetrics.Collector{Env: o.env, Dirs: dirs}}
	agent.Host = resources{reached}
	api := &server.Server{Node: o.node.Name, Pods: reached, Reviewer: agent, ClientCA: clientCA, Certificate: id.serving.Certificate}
	api.LogDir = "/var/log"
	api.Config = server.Config{Port: o.node.Port, MaxPods: o.maxPods, ClusterDomain: o.cluster.Domain, ClusterDNS: o.cluster.DNS}
	fmt.Fprintf(o.env.ErrOut, "podrun: node %s (%s) of %s\n", o.node.Name, strings.Join(o.node.Addresses, ", "), id.config.Server)
	var all sync.WaitGroup
	defer all.Wait()
	for _, r := range id.rotators {
		all.Go(func() { r.Run(ctx, id.client) })
	}
	var served error
	all.Go(func() {
		served = api.Serve(ctx, listener)
		cancel()
	})
	err = agent.Run(ctx)
	cancel()
	all.Wait()
	return errors.Join(err, served, shutDown(context.WithoutCancel(ctx), agent, dirs))
}

// clientAuthorities returns the authorities, in PEM, that certify the clients of the kubelet's API.
func (o *options) clientAuthorities(ofServer []byte) ([]byte, error) {
	if o.clientCA == "" {
		return ofServer, nil
	}
	text, err := os.ReadFile(o.clientCA)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s has no certificate in PEM", o.clientCA)
	}
	if err != nil {
		return nil, report.New(report.Usage, "", "--client-ca-file: %w", err)
	}
	return text, nil
}

// addressTowards returns the host's address on the route to a server.
func addressTowards(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("find the host's address: %w", err)
	}
	conn, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), "9")) // it sends nothing
	if err != nil {
		return "", report.New(report.Host, "--node-ip gives it", "find the host's address: %w", err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
