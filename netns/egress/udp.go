package egress

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// conversations are what a pod has with others by UDP: two sockets each, one of the host's
// that is connected to the other one, and one in the router that is connected to the pod
// and has the other's address.
type conversations struct {
	mu      sync.Mutex
	closed  bool
	all     map[flow]*conversation
	sockets map[*os.File]bool // of echoes
	over    sync.WaitGroup
}

// readDatagrams takes the first datagrams of conversations.
func (e *Egress) readDatagrams(file *os.File) {
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	control := make([]byte, 128)
	for {
		err := raw.Read(func(fd uintptr) bool {
			e.reading.RLock()
			defer e.reading.RUnlock()
			held := buffers.Get().(*[maxDatagram]byte)
			defer buffers.Put(held)
			n, nc, _, from, err := unix.Recvmsg(int(fd), held[:], control, 0)
			if err == unix.EAGAIN {
				return false
			}
			if err == nil {
				e.hear(held[:n], control[:nc], from)
			}
			return true
		})
		if err != nil {
			return
		}
	}
}

// hear passes on a datagram that came to no conversation's own socket.
func (e *Egress) hear(b, control []byte, from unix.Sockaddr) {
	f, ok := flowOf(control, from)
	if !ok {
		return
	}
	if e.asksNames(f.dst) {
		e.nameDatagram(f, bytes.Clone(b))
		return
	}
	e.udp.mu.Lock()
	c := e.udp.all[f]
	e.udp.mu.Unlock()
	if c == nil {
		if c = e.converse(f); c == nil {
			return
		}
	}
	c.last.Store(time.Now().Unix())
	if _, err := c.far.Write(b); err != nil {
		e.excuseDatagram(f, err)
	}
}

// flowOf reads from whom a datagram is and for whom it was; ok is false for one that nobody
// could be answered for, as to connect to an unspecified address is to connect to oneself.
func flowOf(control []byte, from unix.Sockaddr) (f flow, ok bool) {
	switch s := from.(type) {
	case *unix.SockaddrInet4:
		f.src = netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		f.src = netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port))
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return f, false
	}
	for _, m := range messages {
		switch s, err := unix.ParseOrigDstAddr(&m); d := s.(type) {
		case *unix.SockaddrInet4:
			f.dst = netip.AddrPortFrom(netip.AddrFrom4(d.Addr), uint16(d.Port))
		case *unix.SockaddrInet6:
			f.dst = netip.AddrPortFrom(netip.AddrFrom16(d.Addr), uint16(d.Port))
		default:
			_ = err // it is another message
		}
	}
	src := f.src.Addr()
	return f, f.dst.IsValid() && src.IsValid() && !src.IsUnspecified() && !src.IsLinkLocalUnicast()
}

// excuseDatagram tells the pod that a datagram has not arrived.
func (e *Egress) excuseDatagram(f flow, err error) {
	p := datagram(f)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		e.inject(unreach(p, f.dst.Addr(), noPort))
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		e.inject(e.excuse(p, err))
	}
}

// converse begins a conversation, or returns nil.
func (e *Egress) converse(f flow) *conversation {
	to, ok := e.target(f.dst)
	if !ok {
		e.excuseDatagram(f, unix.ENETUNREACH)
		return nil
	}
	if !e.begin() {
		e.udp.endOldest() // for the next that comes
		return nil
	}
	far, err := net.Dial("udp", to.String())
	if err != nil {
		e.end()
		e.excuseDatagram(f, err)
		return nil
	}
	var near *net.UDPConn
	err = e.router.Do(func() (err error) { near, err = inNameOf(f.dst, f.src); return err })
	if err != nil {
		far.Close()
		e.end()
		return nil
	}
	c := &conversation{near: near, far: far.(*net.UDPConn)}
	c.last.Store(time.Now().Unix())
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed {
		c.close()
		e.end()
		return nil
	}
	e.udp.all[f] = c
	e.udp.over.Go(func() { e.talk(f, c) })
	return c
}

// endOldest makes room: it ends the conversation that has been silent for longest.
func (c *conversations) endOldest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest *conversation
	var of flow
	for f, x := range c.all {
		if oldest == nil || x.last.Load() < oldest.last.Load() {
			oldest, of = x, f
		}
	}
	if oldest != nil {
		oldest.close()
		delete(c.all, of)
	}
}

// watch has a socket of an echo closed with all the rest.
func (c *conversations) watch(socket *os.File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.sockets == nil {
		c.sockets = map[*os.File]bool{}
	}
	c.sockets[socket] = true
	return true
}

func (c *conversations) unwatch(socket *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sockets, socket)
}

// close ends all conversations and echoes.
func (c *conversations) close() {
	c.mu.Lock()
	c.closed = true
	for _, x := range c.all {
		x.close()
	}
	for s := range c.sockets {
		s.Close()
	}
	c.mu.Unlock()
	c.over.Wait()
}
