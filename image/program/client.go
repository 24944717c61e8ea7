package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
)

// Client starts the image program when it is needed. Requests that run at the same time share a process,
// which ends with the last of them.
type Client struct {
	// Find returns the path of the program, and a function to be called once it is executed.
	Find func() (path string, started func(), err error)

	mu      sync.Mutex // protects process
	process *process
}

// Do sends a request and returns the last frame, with the error of the request. on, if not nil, is called
// for the frames before it, by one goroutine. When ctx ends, the request is cancelled. output receives what
// the program writes to protocol.FDImageOutput, if not nil.
func (c *Client) Do(ctx context.Context, r Request, on func(Frame), output *os.File) (Frame, error) {
	p, err := c.join(output)
	if err != nil {
		return Frame{}, fmt.Errorf("start the image program: %w", err)
	}
	defer c.leave(p)
	if on == nil {
		on = func(Frame) {}
	}
	call := &call{on: on, done: make(chan struct{})}
	if r.ID, err = p.begin(call); err != nil {
		return Frame{}, err
	}
	if err := p.send(r); err != nil && ctx.Err() == nil {
		p.conn.Close() // read fails all calls with the reason
	}
	stop := context.AfterFunc(ctx, func() { _ = p.send(Request{ID: r.ID, Op: Cancel}) }) // an error ends the call
	defer stop()
	<-call.done
	if call.err != nil {
		return Frame{}, call.err
	}
	return call.last, call.last.Error.Decode()
}

// join returns the running process, or a new one. One with an output serves a single request.
func (c *Client) join(output *os.File) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || output != nil {
		p, err := c.start(output)
		if err != nil {
			return nil, err
		}
		p.users = 1
		if output == nil {
			c.process = p
		}
		return p, nil
	}
	c.process.users++
	return c.process, nil
}

// leave ends the process after its last request.
func (c *Client) leave(p *process) {
	c.mu.Lock()
	p.users--
	last := p.users == 0
	if last && c.process == p {
		c.process = nil
	}
	c.mu.Unlock()
	if last {
		p.end()
	}
}

func (c *Client) start(output *os.File) (*process, error) {
	path, started, err := c.Find()
	if err != nil {
		return nil, err
	}
	defer started()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	near, far := os.NewFile(uintptr(ends[0]), "image program"), os.NewFile(uintptr(ends[1]), "image program")
	defer near.Close()
	defer far.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		return nil, err
	}
	cmd := reexec.Command(reexec.Spec{Name: protocol.EntryImage, Program: path, ExtraFiles: []*os.File{far}})
	if output != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, output)
	}
	cmd.Env = reexec.Environ()
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr // an archive may come from /dev/stdin
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	p := &process{cmd: cmd, conn: conn, calls: map[int]*call{}, ended: make(chan struct{})}
	go p.read()
	return p, nil
}

// process is a running image program.
type process struct {
	cmd   *exec.Cmd
	conn  net.Conn
	users int // protected by the client's mutex
	ended chan struct{}

	sending sync.Mutex

	mu    sync.Mutex // protects the rest
	next  int
	calls map[int]*call
	err   error // why no frame comes any more
}

// call is a request that has been sent. last and err are set when done is closed.
type call struct {
	on   func(Frame)
	last Frame
	err  error
	done chan struct{}
}

func (p *process) begin(c *call) (id int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	p.next++
	p.calls[p.next] = c
	return p.next, nil
}

func (p *process) send(r Request) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return json.NewEncoder(p.conn).Encode(r)
}

// read passes the frames to their calls until the program ends.
func (p *process) read() {
	defer close(p.ended)
	frames := json.NewDecoder(p.conn)
	for {
		var f Frame
		if err := frames.Decode(&f); err != nil {
			p.conn.Close()
			p.fail(err)
			return
		}
		p.mu.Lock()
		call := p.calls[f.ID]
		if f.Done {
			delete(p.calls, f.ID)
		}
		p.mu.Unlock()
		switch {
		case call == nil:
		case f.Done:
			call.last = f
			close(call.done)
		default:
			call.on(f)
		}
	}
}

// fail ends all calls once the process has ended.
func (p *process) fail(err error) {
	if werr := p.cmd.Wait(); werr != nil {
		err = werr
	} else if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = endedError(err)
	for _, call := range p.calls {
		call.err = p.err
		close(call.done)
	}
	clear(p.calls)
}

// end closes the connection, and waits until the program has ended and released the store's locks.
func (p *process) end() {
	p.conn.Close()
	<-p.ended
}
