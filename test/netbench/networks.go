package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/test/internal/measure"
)

// network is how a network namespace is connected.
type network struct {
	name       string
	ns         string       // where outgoing clients run
	out        string       // their server
	reachable  bool         // the remote host connects through the host's ports, which are
	portOffset int          // that much above those inside
	parallel   bool         // between nodes: also several streams at once, and no download
	pids       func() []int // of the processes that carry the traffic
}

// image is the example's, as in the manifests.
const image = "docker.io/podrun/example:1"

// networks returns all networks to compare, the plain veth pair first. Pods of podrun are made with
// its CLI.
func (w *testbed) networks(podrun, rootfs string) ([]network, error) {
	w.podrun = func(args ...string) *exec.Cmd { return exec.Command(podrun, args...) }
	if out, err := w.podrun("image", "import", rootfs, image).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("import the image: %w: %s", err, out)
	}
	plain := network{name: "veth", ns: hostNS, out: remoteAddrs.veth, reachable: true, pids: func() []int { return nil }}
	if err := w.serve(plain.ns); err != nil {
		return nil, err
	}
	a, err := w.pod("a", true)
	if err != nil {
		return nil, err
	}
	b, err := w.pod("b", false)
	if err != nil {
		return nil, err
	}
	podAddresses, err := addresses(b.ns)
	if err != nil {
		return nil, err
	}
	p4, p6 := a, a
	p4.name, p4.out, p4.reachable = "pod to pod", podAddresses[0], false
	p6.name, p6.out, p6.reachable = "pod to pod, IPv6", podAddresses[1], false
	a.name = "podrun"
	all := []network{plain, a, p4, p6}
	for _, f := range []func(ns string) (network, error){w.pasta, w.slirp} {
		ns, err := w.namespace()
		if err != nil {
			return nil, err
		}
		measured, err := f(ns)
		if err == nil {
			err = w.serve(ns)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, measured)
	}
	return all, nil
}

// manifest is of a pod that sleeps.
const manifest = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: %q, imagePullPolicy: Never, command: [sleep, "1000000"], ports: [%s]}
`

// up starts a pod.
func (w *testbed) up(name, ports string, flags ...string) error {
	cmd := w.podrun(append([]string{"up", "-d", "-"}, flags...)...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(manifest, name, image, ports))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("start the pod %s: %w: %s", name, err, out)
	}
	return nil
}

func (w *testbed) pod(name string, open bool) (network, error) {
	var ports []string
	for _, p := range []int{iperfPort, echoPort, shortPort} {
		if open {
			ports = append(ports, fmt.Sprintf("{containerPort: %d, hostPort: %d}", p, p+published))
		}
	}
	if err := w.up(name, strings.Join(ports, ", ")); err != nil {
		return network{}, err
	}
	w.names = append(w.names, name)
	pids := func() []int { return processes("podrun", name) }
	for _, pid := range pids() {
		ns := fmt.Sprintf("/proc/%d/fd/5", pid)
		if to, err := os.Readlink(ns); err == nil && strings.HasPrefix(to, "net:") {
			return network{ns: ns, out: remoteAddrs.podrun, reachable: open, portOffset: published, pids: pids}, w.serve(ns)
		}
	}
	return network{}, fmt.Errorf("the pod %s has no pod init", name)
}

// addresses returns eth0's addresses: IPv4, then IPv6.
func addresses(ns string) ([]string, error) {
	out, err := command(inNamespace(ns, "ip -json address show dev eth0 scope global")).Output()
	var links []struct {
		Info []struct{ Local string } `json:"addr_info"`
	}
	if err == nil {
		err = json.Unmarshal(out, &links)
	}
	var list []string
	for _, l := range links {
		for _, a := range l.Info {
			if a.Local != "" { // ip prints omitted entries as empty
				list = append(list, a.Local)
			}
		}
	}
	if err == nil && len(list) != 2 {
		err = errors.New("there are not two addresses")
	}
	if err != nil {
		return nil, fmt.Errorf("look at eth0: %w: %s", err, out)
	}
	return list, nil
}

// pasta connects a namespace, which it takes as a file, with pasta.
func (w *testbed) pasta(ns string) (network, error) {
	file := filepath.Join(w.dir, "pasta")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return network{}, err
	}
	if err := unix.Mount(ns, file, "", unix.MS_BIND, ""); err != nil {
		return network{}, fmt.Errorf("mount a namespace: %w", err)
	}
	w.undo = append(w.undo, func() { unix.Unmount(file, unix.MNT_DETACH) })
	ports := fmt.Sprintf("%d:%d,%d:%d,%d:%d", iperfPort+2*published, iperfPort, echoPort+2*published, echoPort, shortPort+2*published, shortPort)
	measured := network{name: "pasta", ns: ns, out: remoteAddrs.pasta, reachable: true, portOffset: 2 * published, pids: func() []int { return processes("pasta", "") }}
	return measured, w.startConnector(ns, command("pasta -f --netns-only --netns "+file+" --no-netns-quit --quiet --runas 0 --config-net -I tap0 -u none -T none -U none -t "+ports))
}

// slirp connects a namespace with slirp4netns, which takes ports through a socket.
func (w *testbed) slirp(ns string) (network, error) {
	socket := filepath.Join(w.dir, "slirp")
	measured := network{name: "slirp4netns", ns: ns, out: remoteAddrs.slirp, reachable: true, portOffset: 3 * published, pids: func() []int { return processes("slirp4netns", "") }}
	err := w.startConnector(ns, command("slirp4netns --configure --mtu=65520 --disable-host-loopback --netns-type=path --api-socket "+socket+" "+ns+" tap0"))
	for _, p := range []int{iperfPort, echoPort, shortPort} {
		if err != nil {
			break
		}
		err = sendRequest(socket, fmt.Sprintf(`{"execute": "add_hostfwd", "arguments": {"proto": "tcp", "host_addr": "0.0.0.0", "host_port": %d, "guest_port": %d}}`, p+3*published, p))
	}
	return measured, err
}

// sendRequest sends a request to slirp4netns' socket, which may not exist yet when the namespace is
// connected.
func sendRequest(socket, request string) error {
	var c net.Conn
	err := measure.Within(connectTimeout, time.Millisecond, func() (err error) {
		c, err = net.Dial("unix", socket)
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte(request)); err != nil {
		return err
	}
	c.(*net.UnixConn).CloseWrite()
	reply := make([]byte, 1000)
	n, err := c.Read(reply)
	if err == nil && strings.Contains(string(reply[:n]), "error") {
		err = fmt.Errorf("slirp4netns: %s", reply[:n])
	}
	return err
}

// connectTimeout bounds the start of a program that connects a namespace.
const connectTimeout = 10 * time.Second

// startConnector starts a program that connects a namespace, and waits until it has. The program
// gets a session of its own, as a supervisor has and as podman starts it: the kernel divides the
// processors among sessions (sched_autogroup), and a program in its client's session would have an
// advantage.
func (w *testbed) startConnector(ns string, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return err
	}
	w.children = append(w.children, cmd)
	return measure.Within(connectTimeout, time.Millisecond, func() error {
		return runCommand(inNamespace(ns, fmt.Sprintf("%s _client short %s:%d 0", self(), remoteAddr, shortPort)))
	})
}
