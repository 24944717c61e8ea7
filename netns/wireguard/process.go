package wireguard

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// EntryPoints returns the re-exec entry point protocol.EntryWireguard.
func EntryPoints() map[string]func([]string) int {
	return map[string]func([]string) int{protocol.EntryWireguard: serve}
}

// gcPercent is for the process (GOGC): most of its memory is buffers of 64 KiB, of which a stream leaves many
// behind. With the default it has twice as much, and is not faster.
const gcPercent = 25

func serve([]string) int {
	debug.SetGCPercent(gcPercent)
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData("podrun-wireguard\x00"))), 0, 0, 0)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: the network of other nodes:", err)
		return 1
	}
	return 0
}

// run returns when the router has no pods any longer.
func run() error {
	if err := identify(); err != nil {
		return err
	}
	file := os.NewFile(protocol.FDWireguardSocket, "socket")
	socket, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("listen for the agent: %w", err)
	}
	file.Close()
	t := &tunnel{router: router.Open(fmt.Sprintf("/proc/self/fd/%d", protocol.FDWireguardRouter))}
	failed := make(chan error, 2)
	go func() { failed <- t.listen(socket) }()
	go func() { failed <- awaitNoPods(t.router) }()
	return <-failed
}

// identify writes into the lock which process this is, and of which router. The descriptor stays open: it is
// the lock.
func identify() error {
	identity, ok := procfs.Lookup(os.Getpid())
	var st unix.Stat_t
	if err := unix.Fstat(protocol.FDWireguardRouter, &st); err != nil || !ok {
		return fmt.Errorf("find this process and the router: %w", err)
	}
	text := control.Identity{Process: identity.Process, Router: st.Ino}.String()
	_, err := unix.Pwrite(protocol.FDLock, []byte(text), 0)
	if err == nil {
		err = unix.Ftruncate(protocol.FDLock, int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	return nil
}

// tunnel is the WireGuard device between the router and other nodes.
type tunnel struct {
	router router.Router
	device *device.Device // nil until the first configuration
	config control.Config // of the device
}

// listen configures the tunnel as the agents request, one after the other.
func (t *tunnel) listen(socket net.Listener) error {
	for {
		c, err := socket.Accept()
		if err != nil {
			return fmt.Errorf("listen for the agent: %w", err)
		}
		t.handle(c)
		c.Close()
	}
}

func (t *tunnel) handle(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(control.Timeout)) // an error follows from the next call, too
	var next control.Config
	if json.NewDecoder(c).Decode(&next) != nil {
		return // the agent was killed
	}
	var reply control.Reply
	if err := t.configure(&next); err != nil {
		reply.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(reply) // the agent may be gone; the next one configures again
}

func (t *tunnel) configure(next *control.Config) error {
	if t.device == nil {
		if err := t.open(next.MTU); err != nil {
			return err
		}
	}
	if err := t.device.IpcSet(changes(&t.config, next)); err != nil {
		// Part of it may be in effect: from an empty device on everything is configured again.
		t.device.RemoveAllPeers()
		t.config = control.Config{}
		return fmt.Errorf("configure the device: %w", err)
	}
	t.config = *next
	if err := t.device.Up(); err != nil {
		return fmt.Errorf("open UDP port %d: %w", next.Port, err)
	}
	var networks []netip.Prefix
	for _, p := range next.Peers {
		networks = append(networks, p.Networks...)
	}
	return t.router.SetPeers(next.Own, networks)
}

// remoteTUN is a TUN device of another network namespace, in which its MTU cannot be queried.
type remoteTUN struct {
	tun.Device
	mtu int
}

// MTU implements tun.Device.
func (d *remoteTUN) MTU() (int, error) { return d.mtu, nil }

func (t *tunnel) open(mtu int) error {
	file, err := t.router.OpenTunnel(mtu)
	if err != nil {
		return err
	}
	defer file.Close()
	fd, err := rawsys.Dup(file)
	if err != nil {
		return fmt.Errorf("duplicate the tunnel's descriptor: %w", err)
	}
	native, _, err := tun.CreateUnmonitoredTUNFromFD(fd)
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("open the tunnel: %w", err)
	}
	t.device = device.NewDevice(&remoteTUN{native, mtu}, conn.NewStdNetBind(), device.NewLogger(device.LogLevelSilent, ""))
	return nil
}
