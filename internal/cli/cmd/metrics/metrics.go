// Package metrics has the command metrics, which prints and serves the metrics of pods in the Prometheus text
// format.
package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podmetrics"
	"github.com/podrun/podrun/internal/httpserver"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// stall is how long a client may take to read a response.
const stall = 30 * time.Second

// NewCommand returns the command metrics.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "metrics",
		Usage: "print or serve the metrics of pods for Prometheus",
		Description: `Prints the metrics of the user's pods in the Prometheus text format, under the
names that the kubelet, cAdvisor and kube-state-metrics use: the resource usage
of containers, the states of pods, and the replicas of workloads; and of the
sets of podrun follow. It only reads files, and starts no supervisor. A value
that is not known is left out.

With --listen or --socket it serves them at /metrics until Ctrl-C, without a
password: whoever reaches the address can read them. A request must name the
server by an address, localhost, or the name in --listen or of the machine.
With --textfile it writes a file for node_exporter's textfile collector, once;
a timer repeats it.

Examples:
  podrun metrics
  podrun metrics --listen 9117
  podrun metrics --listen 192.168.1.5:9117
  podrun metrics --socket $XDG_RUNTIME_DIR/podrun-metrics.sock
  podrun metrics --textfile /var/lib/prometheus/node-exporter/podrun.prom
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "serve at this `ADDRESS`: PORT (on 127.0.0.1) or HOST:PORT; port 0 is a free one"},
			&cli.StringFlag{Name: "socket", Usage: "serve on a socket at this `PATH`, which only you can open"},
			&cli.StringFlag{Name: "textfile", Usage: "write to this `FILE`, whose name ends in .prom"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of metrics.
type options struct {
	env      *cmdutil.Env
	words    []string
	given    []string // the given ones of the flags below
	listen   string
	socket   string
	textfile string
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) error {
	o.words = c.Args().Slice()
	o.listen, o.socket, o.textfile = c.String("listen"), c.String("socket"), c.String("textfile")
	for _, name := range []string{"listen", "socket", "textfile"} {
		if c.IsSet(name) {
			o.given = append(o.given, "--"+name)
		}
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf("metrics", "metrics accepts no arguments: it covers all pods")
	case len(o.given) > 1:
		return cmdutil.UsageErrorf("metrics", "%s are mutually exclusive", strings.Join(o.given, " and "))
	case len(o.given) == 0:
		return nil
	}
	switch o.given[0] {
	case "--listen":
		host, port, err := net.SplitHostPort(o.listen)
		if err != nil {
			host, port = "", o.listen
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return cmdutil.UsageErrorf("metrics", "--listen cannot be %q: use a port such as 9117, or HOST:PORT", o.listen)
		}
		if host == "" {
			host = "127.0.0.1"
		}
		o.listen = net.JoinHostPort(host, port)
	case "--socket":
		if o.socket == "" {
			return cmdutil.UsageErrorf("metrics", "--socket requires the path of a socket")
		}
	case "--textfile":
		if filepath.Ext(o.textfile) != ".prom" {
			return cmdutil.UsageErrorf("metrics", "--textfile cannot be %q: node_exporter reads only files whose names end in .prom", o.textfile)
		}
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	c := &podmetrics.Collector{Env: o.env, Dirs: dirs}
	if o.listen != "" || o.socket != "" {
		return o.serve(ctx, c)
	}
	text, problem := c.Collect()
	if o.textfile != "" {
		err = store.WritePublic(o.textfile, text)
	} else {
		_, err = o.env.Out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	if problem != nil {
		return fmt.Errorf("read metrics: %w", problem)
	}
	return nil
}

// serve serves the metrics until a signal.
func (o *options) serve(ctx context.Context, c *podmetrics.Collector) error {
	l, err := o.open()
	if err != nil {
		return err
	}
	defer l.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c)
	handler, where := http.Handler(mux), l.Addr().String()
	if o.listen != "" {
		handler, where = o.checkHost(l, mux), "http://"+where+"/metrics"
	}
	return o.env.UntilStopped(ctx, func(ctx context.Context) error {
		if _, err := fmt.Fprintln(o.env.Out, report.Escape(where)); err != nil {
			return err
		}
		return httpserver.Serve(ctx, l, handler, stall)
	})
}

// checkHost refuses requests with a host name that is not this server's: they come from a page in a browser whose
// name has just been changed to lead here (DNS rebinding). An address leads nowhere else. A server on the
// loopback has only loopback names, as podrun ui.
func (o *options) checkHost(l net.Listener, next http.Handler) http.Handler {
	onLoopback := l.Addr().(*net.TCPAddr).IP.IsLoopback()
	given, _, _ := net.SplitHostPort(o.listen)
	machine, _ := os.Hostname()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := httpserver.HostOf(r)
		_, notAddress := netip.ParseAddr(host)
		isOurs := notAddress == nil || host != "" && (strings.EqualFold(host, given) || strings.EqualFold(host, machine))
		if !httpserver.IsLoopback(host) && (onLoopback || !isOurs) {
			http.Error(w, "the metrics are not served at this host name: use an address, or podrun metrics --listen NAME:PORT", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o *options) open() (net.Listener, error) {
	if o.socket != "" {
		return cmdutil.ListenPrivately(o.socket, "the metrics")
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, report.New(report.Failure, cmdutil.ListenHint(err, "port 0 is a free port; ss -ltnp shows which process uses this one"), "cannot serve the metrics: %w", err)
	}
	return l, nil
}
