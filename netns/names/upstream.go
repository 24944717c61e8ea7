package names

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
)

// upstream asks the host's resolvers, as the host's resolv.conf says, which is read again
// when it has changed.
type upstream struct {
	path string

	mu      sync.Mutex
	read    os.FileInfo // of what conf was read from; nil: none could be
	conf    hostConf
	turn    int
	pending map[string]*pending // what is being asked, by the query without its number
}

// pending is a query that is under way: who asks the same waits for the one answer, so
// that a resolver that asks us in turn does not do so without end.
type pending struct {
	done   chan struct{}
	answer []byte
	err    error
}

// current is the configuration, with the servers in the order in which to ask them.
func (u *upstream) current() hostConf {
	st, err := os.Stat(u.path)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		st = nil
	}
	if u.conf.servers == nil || changed(u.read, st) {
		text, _ := os.ReadFile(u.path) // the C library does without one, too
		u.conf, u.read = parseHost(string(text)), st
	}
	c := u.conf
	if c.rotate {
		n := u.turn % len(c.servers)
		c.servers = slices.Concat(c.servers[n:], c.servers[:n])
		u.turn++
	}
	return c
}

func changed(was, is os.FileInfo) bool {
	if was == nil || is == nil {
		return was != is
	}
	return !os.SameFile(was, is) || was.ModTime() != is.ModTime() || was.Size() != is.Size()
}

// errNobody says that no server has answered.
var errNobody = errors.New("no resolver of the host has answered")

// ask passes a query on and returns the answer as it came, with the query's number. A
// cut answer is asked for again by TCP if stream is set.
func (u *upstream) ask(ctx context.Context, msg []byte, stream bool) ([]byte, error) {
	key := strconv.FormatBool(stream) + string(msg[2:])
	u.mu.Lock()
	p := u.pending[key]
	if p == nil {
		p = &pending{done: make(chan struct{})}
		if u.pending == nil {
			u.pending = map[string]*pending{}
		}
		u.pending[key] = p
		go u.carryOut(ctx, p, key, slices.Clone(msg), stream)
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

func (u *upstream) carryOut(ctx context.Context, p *pending, key string, msg []byte, stream bool) {
	p.answer, p.err = u.exchange(ctx, msg, stream)
	u.mu.Lock()
	delete(u.pending, key)
	u.mu.Unlock()
	close(p.done)
}
