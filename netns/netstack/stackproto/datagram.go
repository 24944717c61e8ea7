package stackproto

import (
	"net"
	"sync"
)

// DatagramConn passes datagrams, including empty ones, over a seqpacket socket. It puts a byte
// before each, because an empty message means the end.
type DatagramConn struct{ net.Conn }

// MaxDatagram exceeds the size of every datagram.
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

// Read receives a datagram; bytes that do not fit into b are lost.
func (c DatagramConn) Read(b []byte) (int, error) {
	held := framed.Get().(*[1 + MaxDatagram]byte)
	defer framed.Put(held)
	n, err := c.Conn.Read(held[:])
	if err != nil {
		return 0, err
	}
	return copy(b, held[1:n]), nil
}
