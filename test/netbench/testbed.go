package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Addresses of the two hosts, and the ports of each side's servers. A published port is 100 above
// (pasta: 200, slirp4netns: 300).
const (
	hostAddr, remoteAddr   = "10.77.0.1", "10.77.0.2"
	hostAddr6, remoteAddr6 = "fd77::1", "fd77::2"

	iperfPort, echoPort, shortPort, tlsPort = 5201, 7000, 7001, 7443
	published                               = 100
)

// remoteAddrs are the remote host's, one for each network that is compared: a port that was used
// with an address waits for a minute (TIME_WAIT), and finding a free one beside many that wait
// takes longer than the connection.
var remoteAddrs = struct{ veth, podrun, pasta, slirp string }{remoteAddr, "10.77.0.3", "10.77.0.4", "10.77.0.5"}

// hostNS is the network of this process, for one that enters it.
const hostNS = "/proc/self/ns/net"

// testbed is this process's network, which stands for the host's, and the remote one.
type testbed struct {
	remote   string // path of the namespace
	dir      string // for files
	proc     string // where processorTime reads
	children []*exec.Cmd
	undo     []func()
	podrun   func(args ...string) *exec.Cmd
	names    []string // of pods
}

func newTestbed(proc string) (*testbed, error) {
	dir, err := os.MkdirTemp("", "netbench-")
	if err != nil {
		return nil, err
	}
	w := &testbed{dir: dir, proc: proc, undo: []func(){func() { os.RemoveAll(dir) }}}
	if w.remote, err = w.namespace(); err != nil {
		return nil, err
	}
	pid := strings.Split(w.remote, "/")[2]
	for _, line := range []string{
		"ip link set lo up", "ip link add out type veth peer name in netns " + pid,
		"ip addr add " + hostAddr + "/24 dev out", "ip addr add " + hostAddr6 + "/64 dev out nodad", "ip link set out up",
		inNamespace(w.remote, "ip link set lo up"), inNamespace(w.remote, "ip addr add "+remoteAddr+"/24 dev in"),
		inNamespace(w.remote, "ip addr add "+remoteAddrs.podrun+"/24 dev in"), inNamespace(w.remote, "ip addr add "+remoteAddrs.pasta+"/24 dev in"),
		inNamespace(w.remote, "ip addr add "+remoteAddrs.slirp+"/24 dev in"),
		inNamespace(w.remote, "ip addr add "+remoteAddr6+"/64 dev in nodad"), inNamespace(w.remote, "ip link set in up"),
		"ip route add default via " + remoteAddr, "ip -6 route add default via " + remoteAddr6,
	} {
		if err := runCommand(line); err != nil {
			return nil, err
		}
	}
	return w, w.serve(w.remote)
}

// inNamespace prefixes a command line so that it runs in a network namespace.
func inNamespace(ns, line string) string { return "nsenter --net=" + ns + " " + line }

// runCommand runs one command, whose arguments contain no spaces.
func runCommand(line string) error {
	if out, err := command(line).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return nil
}

func command(line string) *exec.Cmd {
	f := strings.Fields(line)
	return exec.Command(f[0], f[1:]...)
}

// namespace makes a network namespace and returns its path.
func (w *testbed) namespace() (string, error) {
	cmd := exec.Command("/proc/self/exe", "_wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := w.start(cmd); err != nil {
		return "", err
	}
	ns := fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid)
	return ns, runCommand(inNamespace(ns, "ip link set lo up"))
}

// start starts a process that runs until the end. A subcommand of this program prints when it is
// ready.
func (w *testbed) start(cmd *exec.Cmd) error {
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	w.children = append(w.children, cmd)
	output := bufio.NewReader(ready)
	if line, err := output.ReadString('\n'); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, line)
	}
	go io.Copy(io.Discard, output)
	return nil
}

// serve starts all servers in a namespace.
func (w *testbed) serve(ns string) error {
	if err := w.start(command(inNamespace(ns, self()+" _serve"))); err != nil {
		return err
	}
	iperf := command(inNamespace(ns, fmt.Sprintf("iperf3 --server --forceflush --port %d", iperfPort)))
	return w.start(iperf)
}

// self returns the path of this program for a command that enters a namespace first.
func self() string { return fmt.Sprintf("/proc/%d/exe", os.Getpid()) }

func (w *testbed) close() {
	for _, name := range w.names {
		w.podrun("down", "--force", name).Run()
	}
	for i := len(w.undo) - 1; i >= 0; i-- {
		w.undo[i]()
	}
	for _, k := range w.children {
		k.Process.Kill()
		k.Wait()
	}
}
