package ingress

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// loopPort accepts connections on the thread that connects to the pod: no other thread has to be
// woken in between.
type loopPort struct {
	server   *Server
	dialer   *NetnsDialer
	listener int
	to       target

	// For the loop's thread.
	paused   bool
	retrying bool // it waits for a descriptor
}

func (s *Server) addLoopPort(file *os.File, to target, d *NetnsDialer) (portServer, error) {
	listener, err := rawsys.Dup(file)
	if err != nil {
		return nil, err
	}
	p := &loopPort{server: s, dialer: d, to: to, listener: listener}
	if err = unix.SetNonblock(p.listener, true); err == nil {
		if err = setKeepalive(p.listener); err == nil {
			err = d.loop.Do(p.listen)
		}
	}
	if err != nil {
		unix.Close(p.listener)
		return nil, err
	}
	return p, nil
}

// setKeepalive enables the detection of peers that have disappeared without closing: accepted
// sockets inherit the options of a listening socket.
func setKeepalive(fd int) error {
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, int(keepalive.Idle / time.Second)},
		{unix.SOL_TCP, unix.TCP_KEEPINTVL, int(keepalive.Interval / time.Second)},
		{unix.SOL_TCP, unix.TCP_KEEPCNT, keepalive.Count},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		if err := rawsys.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *loopPort) listen() error {
	return p.dialer.loop.Watch(p.listener, relay.Readable, func(uint32) { p.accept() })
}

func (p *loopPort) pause() {
	_ = p.dialer.loop.Do(func() error { // a loop that has ended accepts nothing either
		p.paused = true
		p.dialer.loop.Unwatch(p.listener, false)
		return nil
	})
}

func (p *loopPort) resume() {
	_ = p.dialer.loop.Do(func() error {
		if p.paused = false; !p.retrying && p.listen() != nil {
			p.retryListen()
		}
		return nil
	})
}

func (p *loopPort) close() {
	p.pause()
	unix.Close(p.listener)
}

// remove accepts the connections that wait, and closes at once: if the server's is the last descriptor of the socket, the
// kernel resets those that are not accepted. There is a bound because more may come all the time.
func (p *loopPort) remove() {
	if p.dialer.loop.Do(func() error {
		p.paused = true
		p.dialer.loop.Unwatch(p.listener, false)
		for range maxActive {
			if !p.accept() {
				break
			}
		}
		unix.Close(p.listener)
		return nil
	}) != nil {
		unix.Close(p.listener)
	}
}

// retryListen retries later, when there may be a descriptor.
func (p *loopPort) retryListen() {
	p.retrying = true
	p.dialer.loop.AddTicker(func() bool {
		p.retrying = !p.paused && p.listen() != nil
		return p.retrying
	})
}

// accept accepts one connection, and reports whether there was one; another event reports the next.
func (p *loopPort) accept() bool {
	near, from, err := relay.Accept(p.listener)
	switch err {
	case nil:
		p.forward(near, from)
		return true
	case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
	default: // out of descriptors until other connections end
		p.server.logError(err)
		p.dialer.loop.Unwatch(p.listener, false)
		p.retryListen()
	}
	return false
}

// forward starts to forward one connection.
func (p *loopPort) forward(near int, from netip.AddrPort) {
	of := p.to.infoOf(from.Addr(), "TCP")
	if !p.server.acquire(of) {
		relay.ResetFD(near)
		return
	}
	to, shown := p.to.resolve(p.dialer, from.Addr())
	fd, err := p.dialer.connect(unix.SOCK_STREAM, from, to, shown)
	if err != nil {
		relay.ResetFD(near)
		p.server.release()
		return
	}
	over := false
	end := p.dialer.loop.ProxyPending(near, fd, connectTimeout, func() {
		over = true
		delete(p.server.proxied, near)
		p.server.release()
	})
	if !over {
		p.server.proxied[near] = proxied{of, end}
	}
}
