package ingress

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/netns/relay"
)

// directPort has the thread that connects to the pod accept what comes, too: nobody has to
// be woken between the two.
type directPort struct {
	server   *Server
	inside   *Inside
	listener int
	to       target

	// The loop's.
	paused  bool
	starved bool // it waits for a descriptor
}

func (s *Server) addDirect(file *os.File, to target, d *Inside) (port, error) {
	listener, err := brief.Copy(file)
	if err != nil {
		return nil, err
	}
	p := &directPort{server: s, inside: d, to: to, listener: listener}
	if err = unix.SetNonblock(p.listener, true); err == nil {
		if err = findGone(p.listener); err == nil {
			err = d.loop.Do(p.listen)
		}
	}
	if err != nil {
		unix.Close(p.listener)
		return nil, err
	}
	return p, nil
}

// findGone has who is at the other end found to have gone without a word: what a listening
// socket is told holds for those that it accepts.
func findGone(fd int) error {
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, int(aliveness.Idle / time.Second)},
		{unix.SOL_TCP, unix.TCP_KEEPINTVL, int(aliveness.Interval / time.Second)},
		{unix.SOL_TCP, unix.TCP_KEEPCNT, aliveness.Count},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		if err := brief.Set(fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *directPort) listen() error {
	return p.inside.loop.Watch(p.listener, relay.Readable, func(uint32) { p.accept() })
}

func (p *directPort) halt() {
	_ = p.inside.loop.Do(func() error { // a loop that has ended takes nothing either
		p.paused = true
		p.inside.loop.Forget(p.listener, false)
		return nil
	})
}

func (p *directPort) proceed() {
	_ = p.inside.loop.Do(func() error {
		if p.paused = false; !p.starved && p.listen() != nil {
			p.starve()
		}
		return nil
	})
}

func (p *directPort) close() {
	p.halt()
	unix.Close(p.listener)
}

// starve looks for a descriptor later.
func (p *directPort) starve() {
	p.starved = true
	p.inside.loop.Tick(func() bool {
		p.starved = !p.paused && p.listen() != nil
		return p.starved
	})
}

// accept takes one connection; the next is told of anew.
func (p *directPort) accept() {
	near, from, err := relay.Accept(p.listener)
	switch err {
	case nil:
		p.pass(near, from)
	case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
	default: // there is no descriptor until others end
		p.server.tell(err)
		p.inside.loop.Forget(p.listener, false)
		p.starve()
	}
}

// pass begins one connection's life.
func (p *directPort) pass(near int, from netip.AddrPort) {
	if !p.server.enter() {
		relay.ResetFD(near)
		return
	}
	to, shown := p.to.way(p.inside, from.Addr())
	fd, err := p.inside.connect(unix.SOCK_STREAM, from, to, shown)
	if err != nil {
		relay.ResetFD(near)
		p.server.leave()
		return
	}
	over := false
	end := p.inside.loop.Meet(near, fd, connectTime, func() {
		over = true
		delete(p.server.carried, near)
		p.server.leave()
	})
	if !over {
		p.server.carried[near] = end
	}
}
