package egress

import (
	"net"
	"net/netip"

	"github.com/podrun/podrun/netns/relay"
)

// namesPort is where a resolver is asked, at the gateway.
const namesPort = 53

// asksNames says whether something is for the resolver.
func (e *Egress) asksNames(to netip.AddrPort) bool {
	gateway := e.config.Pool.Gateway()
	return to.Port() == namesPort && (to.Addr() == gateway.V4 || to.Addr() == gateway.V6)
}

// nameConnection has the resolver serve a connection. The caller holds tcp.mu.
func (e *Egress) nameConnection(c *net.TCPConn) {
	if e.config.Names == nil || e.tcp.closed || !e.begin() {
		relay.Reset(c)
		return
	}
	if e.tcp.names == nil {
		e.tcp.names = map[*net.TCPConn]bool{}
	}
	e.tcp.names[c] = true
	e.tcp.over.Go(func() {
		e.config.Names.Converse(c)
		e.tcp.mu.Lock()
		defer e.tcp.mu.Unlock()
		delete(e.tcp.names, c)
		e.end()
	})
}

// nameDatagram has the resolver answer a datagram.
func (e *Egress) nameDatagram(f flow, query []byte) {
	if e.config.Names == nil {
		e.inject(unreach(datagram(f), f.dst.Addr(), noPort))
		return
	}
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed || !e.begin() {
		return // it will be asked again
	}
	e.udp.over.Go(func() {
		defer e.end()
		answer := e.config.Names.Answer(query)
		if answer == nil {
			return
		}
		_ = e.router.Do(func() error { // one that is lost is asked for again
			c, err := inNameOf(f.dst, f.src)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(answer)
			return err
		})
	})
}
