package stackproto

import (
	"net"
	"sync"
)

// DatagramConn passes datagrams, empty ones too, over a socket of whole messages: a byte
// goes before each, since a message of nothing is the end.
type DatagramConn struct{ net.Conn }

// MaxDatagram is more than any has.
const MaxDatagram = 1 << 16

var (
	Buffers = sync.Pool{New: func() any { return new([MaxDatagram]byte) }}
	framed  = sync.Pool{New: func() any { return new([1 + MaxDatagram]byte) }}
)

func (c DatagramConn) Write(b []byte) (int, error) {
	held := framed.Get().(*[1 + MaxDatagram]byte)
	defer framed.Put(held)
	n := copy(held[1:], b)
	if _, err := c.Conn.Write(held[:1+n]); err != nil {
		return 0, err
	}
	return n, nil
}

// Read takes a datagram; what does not fit into b is lost.
func (c DatagramConn) Read(b []byte) (int, error) {
	held := framed.Get().(*[1 + MaxDatagram]byte)
	defer framed.Put(held)
	n, err := c.Conn.Read(held[:])
	if err != nil {
		return 0, err
	}
	return copy(b, held[1:n]), nil
}
