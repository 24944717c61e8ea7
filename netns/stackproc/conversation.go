package stackproc

import (
	"net"
	"sync"
)

// Conversation passes datagrams, empty ones too, over a socket of whole messages: a byte
// goes before each, since a message of nothing is the end.
type Conversation struct{ net.Conn }

// maxDatagram is more than any has.
const maxDatagram = 1 << 16

var (
	datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}
	messages  = sync.Pool{New: func() any { return new([1 + maxDatagram]byte) }}
)

func (c Conversation) Write(b []byte) (int, error) {
	held := messages.Get().(*[1 + maxDatagram]byte)
	defer messages.Put(held)
	n := copy(held[1:], b)
	if _, err := c.Conn.Write(held[:1+n]); err != nil {
		return 0, err
	}
	return n, nil
}

// Read takes a datagram; what does not fit into b is lost.
func (c Conversation) Read(b []byte) (int, error) {
	held := messages.Get().(*[1 + maxDatagram]byte)
	defer messages.Put(held)
	n, err := c.Conn.Read(held[:])
	if err != nil {
		return 0, err
	}
	return copy(b, held[1:n]), nil
}
