// Package control has the messages to the process of package wireguard, and its client. It does not link
// WireGuard.
package control

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
)

// Key is a key of Curve25519. Its text is base64, as in wg(8).
type Key [32]byte

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, k[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(k) {
		return errors.New("a WireGuard key has 32 bytes, in base64")
	}
	copy(k[:], b)
	return nil
}

// Config is all that the process needs to know.
type Config struct {
	PrivateKey Key
	Port       uint16         // of UDP, in the host's network
	MTU        int            // of the tunnel when it is made
	Own        []netip.Prefix // the pods of this node: other nodes reach nothing else
	Peers      []Peer
}

// Peer is another node.
type Peer struct {
	PublicKey Key
	Endpoint  netip.AddrPort
	Networks  []netip.Prefix // its pods
}

// Reply is the answer to a Config.
type Reply struct {
	Error string `json:",omitempty"`
}

// Identity is the content of the lock, which the process writes.
type Identity struct {
	procfs.Process
	Router uint64 // the inode of its network namespace
}

// String returns the identity as it is in the lock.
func (i Identity) String() string { return fmt.Sprintf("%d %d %d\n", i.PID, i.StartTime, i.Router) }

// ReadIdentity reads the identity of the process that holds a lock. It is an earlier process's until the
// process has written its own.
func ReadIdentity(lock *os.File) (i Identity, err error) {
	b := make([]byte, 100)
	n, err := lock.ReadAt(b, 0)
	if err == io.EOF {
		_, err = fmt.Sscan(string(b[:n]), &i.PID, &i.StartTime, &i.Router)
	}
	if err != nil {
		return i, fmt.Errorf("read the lock of WireGuard: %w", err)
	}
	return i, nil
}

// Command prepares the process in the calling thread's network namespace, which is the host's. program has the
// entry point protocol.EntryWireguard. The process outlives the caller: it holds the lock from now on, listens
// at the socket, and ends some time after the last pod of the router.
func Command(program string, lock, socket, router *os.File) *exec.Cmd {
	cmd := exec.Command(program, protocol.EntryWireguard)
	cmd.Args[0] = "podrun"
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock, socket, router} // protocol.FDLock, FDWireguardSocket, FDWireguardRouter
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// Listen makes the socket for the process, in the place of a former one.
func Listen(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make the socket of WireGuard: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the socket of WireGuard: %w", err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// Timeout limits an exchange of messages.
const Timeout = 30 * time.Second

// Send makes the process at a socket use a configuration from now on.
func Send(socket string, c *Config) error {
	err := send(socket, c)
	if err != nil {
		return fmt.Errorf("configure WireGuard: %w", err)
	}
	return nil
}

func send(socket string, c *Config) error {
	conn, err := net.DialTimeout("unix", socket, Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(c); err != nil {
		return err
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return err
	}
	if reply.Error != "" {
		return errors.New(reply.Error)
	}
	return nil
}
