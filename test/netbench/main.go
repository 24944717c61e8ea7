// Command netbench compares a pod's network with pasta's and slirp4netns', and with a plain veth
// pair, in one run: real clients (iperf3, curl) and small ones of its own connect to a second
// "host", a network namespace behind a veth pair. It also compares the network between pods of both
// hosts with the kernel's WireGuard and with routes. It prints tables of medians and the project's
// targets, met or missed.
//
// scripts/bench starts it as root of a user, mount, PID and network namespace of an unprivileged
// user: it does not touch the host's network.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/netns/wireguard"
	"github.com/podrun/podrun/test/internal/measure"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == wireguardEntry {
		os.Exit(wireguard.EntryPoints()[wireguardEntry](os.Args[2:]))
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "_") {
		if err := subcommand(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "netbench:", err)
			os.Exit(1)
		}
		return
	}
	// The children die with the thread that has started them (Pdeathsig), which netns must not end as one of its own.
	runtime.LockOSThread()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "netbench:", err)
		os.Exit(1)
	}
}

// wireguardEntry is the first argument of the process of podrun's WireGuard.
const wireguardEntry = protocol.EntryWireguard

func run() error {
	podrun := flag.String("podrun", "", "the podrun binary")
	rootfs := flag.String("rootfs", "", "the example image's root file system, a tar")
	rounds := flag.Int("rounds", 3, "how often everything is measured; what is over soon, oftener")
	seconds := flag.Int("seconds", 2, "how long each stream lasts")
	out := flag.String("json", "", "where all figures go")
	page := flag.String("page", "", "write the tables, as Markdown, into this file")
	onlyNodes := flag.Bool("nodes", false, "measure only the network between pods of two nodes")
	proc := flag.String("proc", "/proc", "the /proc in which processor time is read; only the /proc of the first PID namespace has the kernel's threads")
	flag.Parse()
	tools := []string{"ip", "nsenter", "iperf3", "sysctl"}
	if !*onlyNodes {
		tools = append(tools, "curl", "pasta", "slirp4netns")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: scripts/deps bench", err)
		}
	}
	w, err := newTestbed(*proc)
	if err != nil {
		return err
	}
	defer w.close()
	f := figures{}
	var networks []network
	if !*onlyNodes {
		if networks, err = w.networks(*podrun, *rootfs); err != nil {
			return err
		}
		if err := w.starts(f, *rounds*5); err != nil {
			return err
		}
	}
	between, err := w.nodes()
	if err != nil {
		return err
	}
	networks = append(networks, between...)
	each := func(do func(network) error) error {
		for _, x := range networks {
			if err := do(x); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		return nil
	}
	if err := measure.Rounds("netbench: streams", 1, *rounds, func(int) error {
		return each(func(x network) error { return w.measureStreams(f, x, *seconds) })
	}); err != nil {
		return err
	}
	if !*onlyNodes {
		w.memory(f, networks) // a pod that has been woken often hibernates later
	}
	for range *rounds * slicesPerRound {
		if err := each(func(x network) error { return w.measureRequests(f, x) }); err != nil {
			return err
		}
	}
	if err := f.print(os.Stdout); err != nil {
		return err
	}
	if *page != "" {
		if err := os.WriteFile(*page, []byte(f.page()), 0o644); err != nil {
			return err
		}
	}
	return measure.Save(*out, f)
}
