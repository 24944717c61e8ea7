// Package ui has the command ui, which serves a page with the pods.
package ui

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/webui"
)

const (
	uiPort  = 7633
	uiStall = 30 * time.Second // for a browser to read a response
)

// NewCommand returns the command ui.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "ui",
		Usage: "show pods, logs, events and resource usage in a browser",
		Description: `Serves a page with the pods of the user, their logs, events and resource usage,
with workloads, Services, claims and images, until Ctrl-C. The page updates by
itself and loads nothing from other servers. It is read-only: it only reads
files, and starts no supervisor.

The page is for this machine only: it is served at a loopback address, or at a
socket of your own (--socket). The printed address contains a token, which is
required and changes each time. From another machine, use ssh.

Examples:
  podrun ui
  podrun ui --port 0
  podrun ui --socket $XDG_RUNTIME_DIR/podrun-ui.sock
  ssh -L 7633:127.0.0.1:7633 box podrun ui
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "address", Value: "127.0.0.1", Usage: "listen on this loopback `ADDRESS`: 127.0.0.1 or ::1"},
			&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: uiPort, Usage: "listen on this `PORT`; 0 is a free one"},
			&cli.StringFlag{Name: "socket", Usage: "listen on a socket at this `PATH` instead, which only you can open"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of ui.
type options struct {
	env        *cmdutil.Env
	words      []string
	address    netip.Addr
	port       int
	hasAddress bool    // --address or --port is given
	socket     *string // nil: listen at address and port
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) error {
	o.words, o.port = c.Args().Slice(), c.Int("port")
	o.hasAddress = c.IsSet("address") || c.IsSet("port")
	if c.IsSet("socket") {
		o.socket = new(c.String("socket"))
	}
	word := c.String("address")
	if word == "localhost" {
		word = "127.0.0.1"
	}
	var err error
	if o.address, err = netip.ParseAddr(word); err != nil {
		return cmdutil.UsageErrorf("ui", "--address cannot be %q: use 127.0.0.1 or ::1", word)
	}
	return nil
}

// Validate implements cmdutil.Command. It accepts only addresses that other machines cannot reach.
func (o *options) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf("ui", "ui accepts no arguments: the page shows all pods")
	case o.socket != nil && o.hasAddress:
		return cmdutil.UsageErrorf("ui", "--socket cannot be used with --address or --port")
	case o.socket != nil && *o.socket == "":
		return cmdutil.UsageErrorf("ui", "--socket requires the path of a socket")
	case !o.address.IsLoopback() || o.address.Zone() != "":
		return report.New(report.Usage, fmt.Sprintf("from another machine use ssh: ssh -L %d:127.0.0.1:%d HOST podrun ui", uiPort, uiPort),
			"--address cannot be %s: the page is for this machine only: use 127.0.0.1 or ::1", o.address)
	case o.port < 0 || o.port > 65535:
		return cmdutil.UsageErrorf("ui", "--port cannot be %d: use 0 to 65535", o.port)
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find out the machine's name: %w", err)
	}
	source, err := newPageSource(dirs)
	if err != nil {
		return err
	}
	l, err := o.listen()
	if err != nil {
		return err
	}
	defer l.Close()
	s := &webui.Server{Source: source, Token: webui.NewToken(), Host: host, Every: podstats.TopInterval, Now: time.Now, Stall: uiStall}
	controller.FinishInterrupted(o.env, dirs)
	return o.env.UntilStopped(ctx, func(ctx context.Context) error {
		if err := o.printAddress(l.Addr(), s.Token); err != nil {
			return err
		}
		return s.Serve(ctx, l)
	})
}

// printAddress prints the URL of the page. The token is after the #, which a browser does not send.
func (o *options) printAddress(address net.Addr, token string) error {
	where := address.String()
	if address.Network() == "unix" {
		where = "localhost:" + strconv.Itoa(uiPort)
		fmt.Fprintf(o.env.ErrOut, "podrun: serving on socket %s; on the machine with the browser run ssh -L %d:%s HOST, then open:\n", report.Escape(address.String()), uiPort, report.Escape(address.String()))
	}
	_, err := fmt.Fprintf(o.env.Out, "http://%s/#token=%s\n", where, token)
	return err
}

func (o *options) listen() (net.Listener, error) {
	if o.socket != nil {
		return cmdutil.ListenPrivately(*o.socket, "the page")
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(o.address, uint16(o.port)).String())
	if err != nil {
		return nil, report.New(report.Failure, "--port 0 uses a free port; "+cmdutil.ListenHint(err, "ss -ltnp shows which process uses this one"), "cannot serve the page: %w", err)
	}
	return l, nil
}
