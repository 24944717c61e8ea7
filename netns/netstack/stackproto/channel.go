package stackproto

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/netns/ipam"
)

// Message is a message between the two processes. Each is one packet of the socket, some with
// descriptors.
type Message struct {
	Verb   string
	Config *Config        `json:",omitempty"` // VerbStart
	From   netip.AddrPort `json:",omitzero"`  // VerbConnection, VerbDatagrams: the client
	Port   int            `json:",omitempty"` // VerbConnection, VerbDatagrams: of the pod
	To     netip.AddrPort `json:",omitzero"`  // VerbEndpoint: of a Service
	Proto  string         `json:",omitempty"` // VerbEndpoint: "TCP" or "UDP"
	Done   bool           `json:",omitempty"` // VerbPaused
	Error  string         `json:",omitempty"` // VerbStarted; "": it serves
}

// Verbs. The process of the stack receives the first group.
const (
	VerbStart      = "start"      // with the TUN device; answered by VerbStarted
	VerbConnection = "connection" // with a client's connection and a socket that stays open at both ends as long as it is needed
	VerbDatagrams  = "datagrams"  // with the end of a SocketPair
	VerbPause      = "pause"      // answered by VerbPaused
	VerbResume     = "resume"     // after a successful VerbPaused

	VerbStarted   = "started"
	VerbPaused    = "paused"
	VerbQuery     = "query"     // with the end of a SocketPair: a DNS query to be answered
	VerbEndpoint  = "endpoint"  // with the end of a SocketPair: answered by an address and port, or by nothing if there is none
	VerbQueryConn = "queryConn" // with a connection to be served by the resolver
)

// Config describes the pod that the stack serves.
type Config struct {
	Pool         ipam.Pool
	Slot         ipam.Slot
	HostLoopback bool
	Endpoints    bool // the other process has endpoints of Services
	Names        bool // the other process answers DNS queries
}

const (
	maxMessage = 4 << 10
	maxFiles   = 2
)

// Channel is an end of the socket between the processes.
type Channel struct {
	Conn *net.UnixConn
	mu   sync.Mutex // serializes senders
}

// InheritedChannel returns the channel that this process was started with.
func InheritedChannel() (*Channel, error) {
	unix.CloseOnExec(protocol.FDNetstack)
	conn, err := socketOf(protocol.FDNetstack)
	if err != nil {
		return nil, fmt.Errorf("open the channel to the supervisor: %w", err)
	}
	return &Channel{Conn: conn}, nil
}

// Send sends a message with duplicates of descriptors.
func (c *Channel) Send(m Message, fds ...int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("send %s: %w", m.Verb, err)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, _, err := c.Conn.WriteMsgUnix(text, rights, nil); err != nil {
		return fmt.Errorf("send %s: %w", m.Verb, err)
	}
	return nil
}

// Receive waits for the next message. The caller owns its files.
func (c *Channel) Receive() (m Message, files []*os.File, err error) {
	text := make([]byte, maxMessage)
	control := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, nc, _, _, err := c.Conn.ReadMsgUnix(text, control)
	if err != nil {
		return m, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:nc])
	if err != nil {
		return m, nil, err
	}
	for _, r := range messages {
		fds, err := unix.ParseUnixRights(&r)
		if err != nil {
			return m, nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if err := json.Unmarshal(text[:n], &m); err != nil {
		CloseAll(files)
		return m, nil, err // an empty read: closed
	}
	return m, files, nil
}

// Close closes the channel, which ends the other process's Receive.
func (c *Channel) Close() error { return c.Conn.Close() }

// CloseAll closes files.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// socketOf makes a connection from a descriptor and closes the descriptor.
func socketOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return SocketOf(f)
}

// SocketOf makes a connection from a file, which the caller keeps.
func SocketOf(f *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("it is no socket of this machine")
	}
	return u, nil
}

// SocketPair makes two connected sockets: one for this process and one to be sent to another and
// then closed by the caller. kind is unix.SOCK_STREAM or unix.SOCK_SEQPACKET.
func SocketPair(kind int) (here *net.UnixConn, away int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("make a pair of sockets: %w", err)
	}
	if here, err = socketOf(fds[0]); err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return here, fds[1], nil
}

// ResolverAddr is the address of the pod's resolver: packets to the router's own addresses do not
// reach a stack.
var ResolverAddr = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// UnknownClientAddr stands for clients of other hosts whose address the pod cannot see.
var UnknownClientAddr = netip.AddrFrom4([4]byte{169, 254, 1, 3})
