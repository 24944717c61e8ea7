package nft

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nlbatch"
)

// Transact changes the calling thread's nftables in one step: everything that change requests, or
// nothing. The connection that change gets is for changes only.
//
// The library requests an answer for each part of a transaction, with a copy of each rule, and
// waits for every answer by itself. Transact sends the same parts and waits for one answer.
func Transact(change func(c *nftables.Conn) error) error {
	var failed error
	c, err := nftables.New(nftables.WithTestDial(func(parts []netlink.Message) ([]netlink.Message, error) {
		if len(parts) > 0 {
			failed = send(parts)
		}
		return nil, io.EOF // nothing more to wait for
	}))
	if err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	if err := change(c); err != nil {
		return err
	}
	return errors.Join(c.Flush(), failed)
}

// send sends the parts of a transaction: its begin, the changes, and its end.
func send(parts []netlink.Message) error {
	var message []byte
	last := parts[len(parts)-2].Header.Sequence
	for _, p := range parts {
		p.Header.Flags &^= netlink.Acknowledge | netlink.Echo
		p.Header.PID = 0 // the kernel chooses it
		b, err := p.MarshalBinary()
		if err != nil {
			return err
		}
		if p.Header.Sequence == last {
			nlbatch.RequestAck(b)
		}
		message = append(message, b...)
	}
	return nlbatch.Exchange(unix.NETLINK_NETFILTER, message, last, func(sequence uint32, errno unix.Errno) error {
		for i, p := range parts {
			if p.Header.Sequence == sequence && i > 0 {
				return fmt.Errorf("change %d of %d: %w", i, len(parts)-2, errno)
			}
		}
		return errno
	})
}
