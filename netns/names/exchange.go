package names

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

type reply struct {
	msg []byte
	err error
}

// exchange asks the servers one after the other, until one knows.
func (u *upstream) exchange(ctx context.Context, msg []byte, stream bool) ([]byte, error) {
	conf := u.current()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var tries []string
	for range conf.attempts {
		tries = append(tries, conf.servers...)
	}
	replies := make(chan reply, len(tries))
	var last []byte // an answer that tells of a server's own trouble
	next := time.NewTimer(0)
	defer next.Stop()
	for asked, heard := 0, 0; heard < len(tries); {
		select {
		case <-next.C:
			if asked == len(tries) {
				continue
			}
			server := tries[asked]
			asked++
			go func() {
				answer, err := try(ctx, server, msg, conf, stream)
				replies <- reply{answer, err}
			}()
			next.Reset(min(patience, conf.timeout))
		case r := <-replies:
			heard++
			if r.err == nil && !troubled(r.msg) {
				return r.msg, nil
			}
			if r.err == nil {
				last = r.msg
			}
			if heard >= len(conf.servers) && last != nil {
				return last, nil
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if last == nil {
		return nil, errNobody
	}
	return last, nil
}

// troubled says whether another server may know better (res_send.c of the C library).
func troubled(msg []byte) bool {
	code := dnsmessage.RCode(msg[3] & 0xf)
	return code == dnsmessage.RCodeServerFailure || code == dnsmessage.RCodeNotImplemented || code == dnsmessage.RCodeRefused
}

// try asks one server once.
func try(ctx context.Context, server string, msg []byte, conf hostConf, stream bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, conf.timeout)
	defer cancel()
	msg = slices.Clone(msg)
	rand.Read(msg[:2]) // a client does not choose what others would have to guess
	if !conf.stream {
		answer, err := byDatagram(ctx, server, msg)
		if err != nil || !stream || !cut(answer) {
			return answer, err
		}
	}
	return byStream(ctx, server, msg)
}

// cut says whether an answer was too long for its datagram.
func cut(msg []byte) bool { return msg[2]&2 != 0 }

func byDatagram(ctx context.Context, server string, msg []byte) ([]byte, error) {
	c, err := dial(ctx, "udp", server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(0, 1)) })()
	if _, err := c.Write(msg); err != nil {
		return nil, err
	}
	buf := make([]byte, maxSize)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		if answers(buf[:n], msg) { // what is not for us may be forged
			return slices.Clone(buf[:n]), nil
		}
	}
}

func byStream(ctx context.Context, server string, msg []byte) ([]byte, error) {
	c, err := dial(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(0, 1)) })()
	if err := writeMessage(c, msg); err != nil {
		return nil, err
	}
	answer, err := readMessage(c)
	if err == nil && !answers(answer, msg) {
		err = errors.New("the resolver answers something else")
	}
	return answer, err
}

func dial(ctx context.Context, network, server string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, server)
}

// answers says whether a message answers a query. A server that cannot read the question
// need not repeat it.
func answers(answer, msg []byte) bool {
	var a, q dnsmessage.Parser
	h, err := a.Start(answer)
	if err != nil || !h.Response || h.ID != binary.BigEndian.Uint16(msg) {
		return false
	}
	if _, err := q.Start(msg); err != nil {
		return false
	}
	want, err := q.Question()
	if err != nil {
		return false
	}
	have, err := a.Question()
	if err == dnsmessage.ErrSectionDone {
		return h.RCode != dnsmessage.RCodeSuccess
	}
	return err == nil && have.Type == want.Type && have.Class == want.Class &&
		strings.EqualFold(have.Name.String(), want.Name.String())
}

// readMessage and writeMessage are for TCP: two bytes tell a message's length.
func readMessage(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, msg)
	return msg, err
}

func writeMessage(w io.Writer, msg []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...))
	return err
}
