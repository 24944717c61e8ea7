// Package metrics has the command metrics, which exports pods to Prometheus.
package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command metrics.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "metrics",
		Usage: "export the state and resource usage of pods to Prometheus",
		Description: `Prints metrics of the user's pods in the text format of Prometheus: resource
usage under the names of the kubelet and cAdvisor, states of pods and containers
under those of kube-state-metrics. It only reads files; it starts no supervisor.

--listen and --socket serve them at /metrics until Ctrl-C. --textfile writes a
file once, for node_exporter's textfile collector; a timer repeats it.

Examples:
  podrun metrics
  podrun metrics --listen 9633
  podrun metrics --listen 0.0.0.0:9633
  podrun metrics --textfile /var/lib/node_exporter/podrun.prom
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "serve at this `ADDRESS`: a port of 127.0.0.1, or IP:PORT"},
			&cli.StringFlag{Name: "socket", Usage: "serve at a socket at this `PATH`, which only you can open"},
			&cli.StringFlag{Name: "textfile", Usage: "write to this `FILE`, whose name must end with .prom"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of metrics.
type options struct {
	env   *cmdutil.Env
	words []string
	given []string          // flags that are given, with dashes
	value map[string]string // of flags that are given, by their names
	dirs  store.Dirs
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) error {
	o.words, o.value = c.Args().Slice(), map[string]string{}
	for _, name := range []string{"listen", "socket", "textfile"} {
		if c.IsSet(name) {
			o.given = append(o.given, "--"+name)
			o.value[name] = c.String(name)
		}
	}
	if port := o.value["listen"]; port != "" && !strings.Contains(port, ":") {
		o.value["listen"] = net.JoinHostPort("127.0.0.1", port)
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf("metrics", "metrics accepts no arguments: it exports all pods")
	case len(o.given) > 1:
		return cmdutil.UsageErrorf("metrics", "%s are mutually exclusive", strings.Join(o.given, " and "))
	case len(o.given) == 1 && o.value[strings.TrimPrefix(o.given[0], "--")] == "":
		return cmdutil.UsageErrorf("metrics", "%s requires a value", o.given[0])
	}
	if file, given := o.value["textfile"]; given && !strings.HasSuffix(file, ".prom") {
		return cmdutil.UsageErrorf("metrics", "--textfile cannot be %q: node_exporter reads only files whose names end with .prom", file)
	}
	if at, given := o.value["listen"]; given {
		if _, err := net.ResolveTCPAddr("tcp", at); err != nil {
			return cmdutil.UsageErrorf("metrics", "--listen cannot be %q: use a port, or IP:PORT", at)
		}
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	controller.Recover(o.env, o.dirs)
	switch {
	case o.value["textfile"] != "":
		text, err := o.text()
		if err != nil {
			return err
		}
		if err := store.WritePublic(o.value["textfile"], text); err != nil {
			return report.New(report.Failure, "", "write metrics: %w", err)
		}
		return nil
	case len(o.given) == 0:
		text, err := o.text()
		if err != nil {
			return err
		}
		return o.env.WriteSafe(text)
	}
	l, err := o.listen()
	if err != nil {
		return err
	}
	return o.env.UntilStopped(ctx, func(ctx context.Context) error { return o.serve(ctx, l) })
}

// text returns all metrics in the text format.
func (o *options) text() ([]byte, error) {
	set, err := collect(o.dirs)
	if err != nil {
		return nil, err
	}
	families, err := json.Marshal(set.Families)
	if err != nil {
		return nil, fmt.Errorf("encode metrics: %w", err)
	}
	return o.env.RunImageProgram(protocol.EntryMetrics, nil, bytes.NewReader(families))
}
