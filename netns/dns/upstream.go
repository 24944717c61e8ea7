package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

type reply struct {
	msg []byte
	err error
}

// exchange queries the servers one after the other, until one answers without an error of its own.
func (u *upstream) exchange(ctx context.Context, msg []byte, stream bool) ([]byte, error) {
	conf := u.current()
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	var tries []string
	for range conf.attempts {
		tries = append(tries, conf.servers...)
	}
	replies := make(chan reply, len(tries))
	var last []byte // an answer that reports a failure of the server
	next := time.NewTimer(0)
	defer next.Stop()
	for asked, received := 0, 0; received < len(tries); {
		select {
		case <-next.C:
			if asked == len(tries) {
				continue
			}
			server := tries[asked]
			asked++
			go func() {
				answer, err := queryServer(ctx, server, msg, conf, stream)
				replies <- reply{answer, err}
			}()
			next.Reset(min(nextServerDelay, conf.timeout))
		case r := <-replies:
			received++
			if r.err == nil && !isServerFailure(r.msg) {
				return r.msg, nil
			}
			if r.err == nil {
				last = r.msg
			}
			if received >= len(conf.servers) && last != nil {
				return last, nil
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if last == nil {
		return nil, errNoAnswer
	}
	return last, nil
}

// isServerFailure reports whether another server may have an answer (res_send.c of the C library).
func isServerFailure(msg []byte) bool {
	code := dnsmessage.RCode(msg[3] & 0xf)
	return code == dnsmessage.RCodeServerFailure || code == dnsmessage.RCodeNotImplemented || code == dnsmessage.RCodeRefused
}

// queryServer queries one server once.
func queryServer(ctx context.Context, server string, msg []byte, conf hostConf, stream bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, conf.timeout)
	defer cancel()
	msg = slices.Clone(msg)
	rand.Read(msg[:2]) // a number that the client has chosen could be predicted by an attacker
	if !conf.useTCP {
		answer, err := queryUDP(ctx, server, msg)
		if err != nil || !stream || !isTruncated(answer) {
			return answer, err
		}
	}
	return queryTCP(ctx, server, msg)
}

// isTruncated reports whether an answer was too long for its datagram.
func isTruncated(msg []byte) bool { return msg[2]&2 != 0 }

func queryUDP(ctx context.Context, server string, msg []byte) ([]byte, error) {
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
		if matches(buf[:n], msg) { // other messages may be forged
			return slices.Clone(buf[:n]), nil
		}
	}
}

func queryTCP(ctx context.Context, server string, msg []byte) ([]byte, error) {
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
	if err == nil && !matches(answer, msg) {
		err = errors.New("unexpected reply of the resolver")
	}
	return answer, err
}

func dial(ctx context.Context, network, server string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, server)
}

// matches reports whether a message answers a query. A server that cannot read the question need
// not repeat it.
func matches(answer, msg []byte) bool {
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

// readMessage and writeMessage are for TCP: two bytes contain a message's length.
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

// upstream queries the host's resolvers according to the host's resolv.conf, which it reads again
// when the file has changed.
type upstream struct {
	path    string
	servers []string // addresses to query instead of those in the file; nil: none

	mu       sync.Mutex
	readFrom os.FileInfo // identity of the file of conf; nil: it could not be read
	conf     hostConf
	rotation int
	pending  map[string]*inFlightQuery // queries in progress, by the query without its number
}

// inFlightQuery is a query in progress. Equal queries wait for the same answer, so that a host
// resolver that queries podrun's resolver in turn does not cause an endless loop.
type inFlightQuery struct {
	done   chan struct{}
	answer []byte
	err    error
}

// current returns the configuration, with the servers in the order in which to query them.
func (u *upstream) current() hostConf {
	st, err := os.Stat(u.path)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		st = nil
	}
	if u.conf.servers == nil || changed(u.readFrom, st) {
		text, _ := os.ReadFile(u.path) // the C library works without a file, too
		u.conf, u.readFrom = parseHost(string(text)), st
		if len(u.servers) > 0 {
			u.conf.servers = nameServers(u.servers)
		}
	}
	c := u.conf
	if c.rotate {
		n := u.rotation % len(c.servers)
		c.servers = slices.Concat(c.servers[n:], c.servers[:n])
		u.rotation++
	}
	return c
}

func changed(was, is os.FileInfo) bool {
	if was == nil || is == nil {
		return was != is
	}
	return !os.SameFile(was, is) || was.ModTime() != is.ModTime() || was.Size() != is.Size()
}

// errNoAnswer means that no server has answered.
var errNoAnswer = errors.New("no resolver of the host answered")

// query forwards a query and returns the answer unchanged, with the query's number. A truncated
// answer is queried again with TCP if stream is set.
func (u *upstream) query(ctx context.Context, msg []byte, stream bool) ([]byte, error) {
	key := strconv.FormatBool(stream) + string(msg[2:])
	u.mu.Lock()
	p := u.pending[key]
	if p == nil {
		p = &inFlightQuery{done: make(chan struct{})}
		if u.pending == nil {
			u.pending = map[string]*inFlightQuery{}
		}
		u.pending[key] = p
		go u.run(ctx, p, key, slices.Clone(msg), stream)
	}
	u.mu.Unlock()
	<-p.done
	if p.err != nil {
		return nil, p.err
	}
	answer := slices.Clone(p.answer)
	copy(answer, msg[:2])
	return answer, nil
}

func (u *upstream) run(ctx context.Context, p *inFlightQuery, key string, msg []byte, stream bool) {
	p.answer, p.err = u.exchange(ctx, msg, stream)
	u.mu.Lock()
	delete(u.pending, key)
	u.mu.Unlock()
	close(p.done)
}
