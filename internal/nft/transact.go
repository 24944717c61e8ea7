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

// Transact changes the calling thread's nftables, in one step: all that change has asked
// for, or nothing. What it asks with is for changes only.
//
// The library has each part of a transaction answered, rules by a copy too, and waits for
// every answer by itself. Here its parts are sent as they are, and answered once.
func Transact(change func(c *nftables.Conn) error) error {
	var failed error
	c, err := nftables.New(nftables.WithTestDial(func(parts []netlink.Message) ([]netlink.Message, error) {
		if len(parts) > 0 {
			failed = send(parts)
		}
		return nil, io.EOF // nothing more to wait for
	}))
	if err != nil {
		return fmt.Errorf("speak to nftables: %w", err)
	}
	if err := change(c); err != nil {
		return err
	}
	return errors.Join(c.Flush(), failed)
}

// send sends the parts of a transaction: its begin, changes, and its end.
func send(parts []netlink.Message) error {
	var message []byte
	last := parts[len(parts)-2].Header.Sequence
	for _, p := range parts {
		p.Header.Flags &^= netlink.Acknowledge | netlink.Echo
		p.Header.PID = 0 // the kernel's
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
