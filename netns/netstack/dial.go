package netstack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// dial connects to the pod from an address. gonet's own function does not return the endpoint,
// which a reset needs.
func (s *Stack) dial(ctx context.Context, from, to netip.AddrPort) (podConn, error) {
	var queue waiter.Queue
	ep, err := s.stack.NewEndpoint(tcp.ProtocolNumber, protocolOf(to.Addr()), &queue)
	if err != nil {
		return podConn{}, errors.New(err.String())
	}
	ep.SocketOptions().SetDelayOption(false)
	answered, notify := waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&answered)
	defer queue.EventUnregister(&answered)
	if err = ep.Bind(fullAddress(from)); err == nil {
		err = ep.Connect(fullAddress(to))
	}
	if _, started := err.(*tcpip.ErrConnectStarted); started {
		select {
		case <-notify:
			err = ep.LastError()
		case <-ctx.Done():
			ep.Abort()
			return podConn{}, fmt.Errorf("connect from %s to %s: %w", from, to, ctx.Err())
		}
	}
	if err != nil {
		ep.Close()
		return podConn{}, fmt.Errorf("connect from %s to %s: %s", from, to, err)
	}
	return podConn{gonet.NewTCPConn(&queue, ep), ep}, nil
}
