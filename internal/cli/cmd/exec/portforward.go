package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	tcp "github.com/podrun/podrun/netns/relay"
)

// NewPortForwardCommand returns the command port-forward.
func NewPortForwardCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "port-forward",
		Usage:     "forward local ports to a pod",
		ArgsUsage: "POD [LOCAL:]REMOTE...",
		Description: `Listens on this machine and passes every connection on to the pod's localhost,
until Ctrl-C. The pod does not need to publish the port.

Examples:
  podrun port-forward web 8080:80
  podrun port-forward web 5000 6000
  podrun port-forward web :80
  podrun port-forward deployment/web 8080:80
  podrun port-forward service/web 8080:80
  podrun port-forward pod/web 8443:https --address 0.0.0.0
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringSliceFlag{Name: "address", Value: cli.NewStringSlice("localhost"), Usage: "listen on these `ADDRESSES` (a list with commas); localhost is 127.0.0.1 and ::1"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &portForwardOptions{env: env} }),
	}
}

type portForwardOptions struct {
	env       *cmdutil.Env
	namespace string
	words     []string // a pod and ports
	lists     []string // of --address
	addresses []listenAddress
}

func (o *portForwardOptions) Complete(c *cli.Context) error {
	o.namespace, o.words, o.lists = c.String("namespace"), c.Args().Slice(), c.StringSlice("address")
	return nil
}

func (o *portForwardOptions) Validate() (err error) {
	if len(o.words) < 2 {
		return cmdutil.UsageErrorf("port-forward", "port-forward requires the name of a pod and at least one port")
	}
	o.addresses, err = listenAddresses(o.lists)
	return err
}

func (o *portForwardOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	p, ports, err := forwardTarget(o.env, dirs, o.namespace, o.words)
	if err != nil {
		return err
	}
	if !p.Alive() {
		return report.New(report.Failure, "podrun ps shows its state", "unable to forward port because pod is not running: %s", p.Name)
	}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	loop, err := tcp.NewLoop()
	if err != nil {
		return err
	}
	w := &forwarder{env: o.env, pod: p, loop: loop}
	defer w.close()
	for _, port := range ports {
		if err := w.listen(o.addresses, port); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- podclient.WatchStatus(ctx, p, func(*pod.Status) bool { return false }) }()
	select {
	case <-signals: // a signal is the normal end, as in kubectl
		return nil
	case err := <-ended:
		if err != nil && !errors.Is(err, podclient.ErrNotRunning) {
			return err
		}
		return report.New(report.Failure, "", "lost connection to pod: %s has ended", p.Name)
	}
}

// forwarder holds the listeners and connections of one port-forward.
type forwarder struct {
	env  *cmdutil.Env
	pod  store.Pod
	loop *tcp.Loop // copies between connections

	mu        sync.Mutex // protects the output and the fields below
	listeners []net.Listener
	conns     map[net.Conn]bool
	closed    bool
	all       sync.WaitGroup
}

// forwardedPort is one forwarded port; local 0 means any free port.
type forwardedPort struct{ local, remote int }

// listen opens a port on every address. For localhost, one of its addresses is enough.
func (w *forwarder) listen(addresses []listenAddress, port forwardedPort) error {
	var errs []error
	opened := map[string]bool{}
	for _, a := range addresses {
		l, err := net.Listen(a.network(), net.JoinHostPort(a.ip.String(), fmt.Sprint(port.local)))
		if err != nil {
			errs = append(errs, fmt.Errorf("unable to listen on port %d: %w", port.local, err))
			continue
		}
		opened[a.word] = true
		if address, ok := l.Addr().(*net.TCPAddr); ok {
			port.local = address.Port // use the same free port on all addresses
		}
		fmt.Fprintf(w.env.Out, "Forwarding from %s -> %d\n", l.Addr(), port.remote)
		w.listeners = append(w.listeners, l)
		w.all.Go(func() { w.accept(l, port) })
	}
	for _, a := range addresses {
		if !opened[a.word] {
			err := errors.Join(errs...)
			return report.New(report.Failure, cmdutil.ListenHint(err, "ss -ltnp shows which process uses the port")+"; LOCAL:REMOTE uses another port, :REMOTE a free one", "%w", err)
		}
	}
	return nil
}

func (w *forwarder) accept(l net.Listener, port forwardedPort) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		w.printf(w.env.Out, "Handling connection for %d\n", port.local)
		if !w.admit(c) {
			c.Close()
			return
		}
		w.all.Go(func() {
			defer w.dismiss(c)
			if err := w.carry(c.(*net.TCPConn), port.remote); err != nil {
				tcp.Reset(c.(*net.TCPConn))
				w.printf(w.env.ErrOut, "an error occurred forwarding %d -> %d: %s\n", port.local, port.remote, report.Escape(err.Error()))
			}
		})
	}
}

func (w *forwarder) admit(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if w.conns == nil {
		w.conns = map[net.Conn]bool{}
	}
	w.conns[c] = true
	return true
}

func (w *forwarder) dismiss(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *forwarder) printf(to interface{ Write([]byte) (int, error) }, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(to, format, args...)
}

// carry makes the supervisor connect inside the pod, and copies data in both directions.
func (w *forwarder) carry(c *net.TCPConn, port int) error {
	inside, err := podclient.Connect(w.pod, port)
	if err != nil {
		return err
	}
	w.loop.ProxyConns(c, inside)
	return nil
}

// close closes all listeners and connections.
func (w *forwarder) close() {
	for _, l := range w.listeners {
		l.Close()
	}
	w.mu.Lock()
	w.closed = true
	for c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.loop.Close()
	w.all.Wait()
}

// listenAddress is an address to listen on, with the word that names it.
type listenAddress struct {
	ip   net.IP
	word string
}

func (a listenAddress) network() string {
	if a.ip.To4() != nil {
		return "tcp4"
	}
	return "tcp6"
}

// listenAddresses parses --address as kubectl does.
func listenAddresses(lists []string) ([]listenAddress, error) {
	var all []listenAddress
	given := map[string]bool{}
	add := func(word string, ips ...net.IP) {
		for _, ip := range ips {
			if !given[ip.String()] {
				given[ip.String()] = true
				all = append(all, listenAddress{ip, word})
			}
		}
	}
	for _, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			ip := net.ParseIP(word)
			switch {
			case word == "localhost":
				add(word, net.IPv4(127, 0, 0, 1), net.IPv6loopback)
			case ip != nil:
				add(word, ip)
			default:
				return nil, cmdutil.UsageErrorf("port-forward", "--address cannot be %q: use localhost or an IP address", word)
			}
		}
	}
	return all, nil
}
