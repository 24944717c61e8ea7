// Package node is the command node: this host as a node of a Kubernetes cluster.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	manifestvalidation "github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/node/server"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command node.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "run the pods of a Kubernetes cluster on this host",
		Description: `Registers this host as a node of a Kubernetes cluster (1.34 or later) and runs the
pods that the cluster's scheduler places on it, without root and without a
kubelet, until it gets a signal. The pods keep running then, and the next podrun
node takes them up. Pods that you start with podrun up run beside them; the
cluster does not see them.

Examples:
  podrun node --kubeconfig node.kubeconfig
  podrun node --kubeconfig node.kubeconfig --node-name attic --node-labels zone=home
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubeconfig", Usage: "the API server and the node's certificate or token are in this `FILE`"},
			&cli.StringFlag{Name: "node-name", Usage: "the `NAME` of the node, by default that of the host"},
			&cli.StringSliceFlag{Name: "node-ip", Usage: "an `ADDRESS` at which the cluster reaches the host, by default that of the route to the API server"},
			&cli.StringSliceFlag{Name: "node-labels", Usage: "labels of the node: `KEY=VALUE`"},
			&cli.StringSliceFlag{Name: "register-with-taints", Usage: "taints of the node when it is registered for the first time: `KEY=VALUE:EFFECT`"},
			&cli.Int64Flag{Name: "max-pods", Value: 110, Usage: "the `NUMBER` of pods that the cluster may place here"},
			&cli.IntFlag{Name: "port", Value: server.Port, Usage: "the `PORT` of the kubelet's API, at which the API server reaches the node; 0 is a free one"},
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
	name       string
	addresses  []string
	labels     []string
	taints     []string
	maxPods    int64
	port       int
	sysctls    []string

	config *kubeapi.Config
	unsafe manifestvalidation.UnsafeSysctls
	node   node.Registration
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.words, o.kubeconfig, o.name = c.Args().Slice(), c.String("kubeconfig"), c.String("node-name")
	o.addresses, o.labels, o.taints = c.StringSlice("node-ip"), c.StringSlice("node-labels"), c.StringSlice("register-with-taints")
	o.maxPods, o.port, o.sysctls = c.Int64("max-pods"), c.Int("port"), c.StringSlice("allow-unsafe-sysctl")
	if o.name == "" {
		o.name = resource.NodeName()
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() (err error) {
	refuse := func(format string, args ...any) error { return cmdutil.UsageErrorf("node", format, args...) }
	switch {
	case len(o.words) > 0:
		return refuse("node takes no arguments: %s", strings.Join(o.words, " "))
	case o.kubeconfig == "":
		return refuse("node requires --kubeconfig")
	case o.port < 0 || o.port > math.MaxUint16:
		return refuse("--port: %d is no port", o.port)
	case o.maxPods < 1:
		return refuse("--max-pods: %d is not positive", o.maxPods)
	}
	if bad := validation.IsDNS1123Subdomain(o.name); len(bad) > 0 {
		return refuse("--node-name: %q is no name of a node: %s", o.name, bad[0])
	}
	for _, ip := range o.addresses {
		if net.ParseIP(ip) == nil {
			return refuse("--node-ip: %q is no IP address", ip)
		}
	}
	o.node = node.Registration{Name: o.name, Addresses: o.addresses, MaxPods: o.maxPods}
	if o.node.Labels, err = parseLabels(o.labels); err != nil {
		return refuse("--node-labels: %w", err)
	}
	if o.node.Taints, err = parseTaints(o.taints); err != nil {
		return refuse("--register-with-taints: %w", err)
	}
	if o.unsafe, err = manifestvalidation.ParseUnsafeSysctls(o.sysctls); err != nil {
		return refuse("--allow-unsafe-sysctl: %w", err)
	}
	o.config, err = kubeapi.LoadKubeconfig(o.kubeconfig)
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

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) error {
	dirs, err := o.env.Preflight(ctx, false)
	if err != nil {
		return err
	}
	launcher, err := o.env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	state := filepath.Join(dirs.Data, "node")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the node's directory: %w", err)
	}
	lock, err := store.OpenFileLock(filepath.Join(state, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	switch free, err := lock.TryExclusive(); {
	case err != nil:
		return err
	case !free:
		return report.New(report.Failure, "", "another podrun node of this user runs already")
	}
	client, err := kubeapi.NewClient(o.config)
	if err != nil {
		return err
	}
	if len(o.addresses) == 0 {
		ip, err := addressTowards(o.config.Server)
		if err != nil {
			return err
		}
		o.node.Addresses = []string{ip}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", fmt.Sprint(o.port)))
	if err != nil {
		return report.New(report.Host, "--port gives another one", "open the port of the kubelet's API: %w", err)
	}
	defer listener.Close()
	o.node.Port = int32(listener.Addr().(*net.TCPAddr).Port)
	o.node.Facts = func() (*node.Facts, error) { return facts(o.env, dirs) }
	if err := o.node.Prepare(); err != nil {
		return err
	}
	e := &engine{env: o.env, dirs: dirs, launcher: launcher, sysctls: o.sysctls}
	agent := &node.Agent{
		Client: client, Engine: e, Node: &o.node,
		Records: node.Records(filepath.Join(state, "pods")), Sysctls: o.unsafe, ErrOut: o.env.ErrOut,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, quiet := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	go func() {
		if _, ok := <-arrived; ok {
			cancel()
		}
	}()
	certificate, err := selfSigned(o.node.Name, o.node.Addresses)
	if err != nil {
		return err
	}
	api := &server.Server{
		Node: o.node.Name, Pods: &reach{agent, e}, Reviewer: agent, ClientCA: o.config.CA,
		Certificate: func() (*tls.Certificate, error) { return certificate, nil },
	}
	fmt.Fprintf(o.env.ErrOut, "podrun: node %s (%s) of %s\n", o.node.Name, strings.Join(o.node.Addresses, ", "), o.config.Server)
	served := make(chan error, 1)
	go func() {
		served <- api.Serve(ctx, listener)
		cancel()
	}()
	err = agent.Run(ctx)
	cancel()
	return errors.Join(err, <-served)
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
