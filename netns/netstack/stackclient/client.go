// Package stackclient runs a network stack in user space (package netstack) for a pod's traffic in
// a process of its own, because it links much code that most pods never need. The process runs as
// long as the channel to it is open, so it exits with its parent, however that ends.
package stackclient

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
)

// Client is the parent's side of a pod's stack process. If the process exits, it starts another
// one; active flows are lost.
type Client struct {
	program string
	config  egress.Config
	tun     int // kept for the next process; not an os.File, which would wake for every packet

	running sync.WaitGroup
	closing chan struct{}

	mu     sync.Mutex
	served *process // nil while none runs
	paused *process
}

// process is a running stack process.
type process struct {
	cmd     *exec.Cmd
	channel *stackproto.Channel
	replies chan stackproto.Message // VerbStarted, VerbPaused
}

// Start starts to serve a pod through its traffic descriptors, which it takes over. program has the
// re-exec entry point protocol.EntryNetstack.
func Start(program string, c egress.Config, traffic router.TrafficFDs) (*Client, error) {
	s := &Client{program: program, config: c, tun: -1, closing: make(chan struct{})}
	err := s.takeTraffic(traffic)
	var p *process
	if err == nil {
		p, err = s.startProcess()
	}
	if err != nil {
		s.closeTUN()
		return nil, fmt.Errorf("serve the pod's network in user space: %w", err)
	}
	s.running.Go(func() { s.superviseProcess(p) })
	return s, nil
}

func (s *Client) takeTraffic(traffic router.TrafficFDs) (err error) {
	defer traffic.Close()
	s.tun, err = rawsys.Dup(traffic[router.TrafficPackets])
	return err
}

func (s *Client) closeTUN() {
	if s.tun >= 0 {
		unix.Close(s.tun)
	}
}

const (
	replyTimeout = 10 * time.Second // for replies without I/O
	steadyTime   = 10 * time.Second // a process that ran this long is restarted at once
)

// startProcess starts a process.
func (s *Client) startProcess() (*process, error) {
	here, away, err := stackproto.SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	end := os.NewFile(uintptr(away), "channel")
	cmd := exec.Command(s.program, protocol.EntryNetstack)
	cmd.Args[0] = "podrun"
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{end}
	p := &process{cmd: cmd, channel: &stackproto.Channel{Conn: here}, replies: make(chan stackproto.Message, 1)}
	err = cmd.Start()
	end.Close() // so that the process alone keeps the channel open
	if err != nil {
		here.Close()
		return nil, err
	}
	c := stackproto.Config{Pool: s.config.Pool, Slot: s.config.Slot, HostLoopback: s.config.HostLoopback, Endpoints: s.config.Endpoint != nil, Names: s.config.Names != nil}
	err = p.channel.Send(stackproto.Message{Verb: stackproto.VerbStart, Config: &c}, s.tun)
	s.running.Go(func() { s.receive(p) })
	if err == nil {
		var m stackproto.Message
		if m, err = p.awaitReply(stackproto.VerbStarted); err == nil && m.Error != "" {
			err = errors.New(m.Error)
		}
	}
	if err != nil {
		p.kill()
		return nil, err
	}
	s.mu.Lock()
	s.served = p
	s.mu.Unlock()
	return p, nil
}

// awaitReply waits for an answer.
func (p *process) awaitReply(verb string) (stackproto.Message, error) {
	timer := time.NewTimer(replyTimeout)
	defer timer.Stop()
	select {
	case m, ok := <-p.replies:
		if !ok {
			return m, errors.New("the process has ended")
		}
		if m.Verb != verb {
			return m, fmt.Errorf("the process sent %s, not %s", m.Verb, verb)
		}
		return m, nil
	case <-timer.C:
		return stackproto.Message{}, errors.New("the process does not answer")
	}
}

// kill ends a process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
	p.channel.Close()
}

// superviseProcess starts the next process when one exits.
func (s *Client) superviseProcess(p *process) {
	for {
		begun := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case <-s.closing:
			_ = p.cmd.Process.Kill()
			<-ended
			p.channel.Close()
			return
		case err := <-ended:
			s.mu.Lock()
			s.served = nil
			s.mu.Unlock()
			p.channel.Close()
			fmt.Fprintln(os.Stderr, "the pod's network in user space has ended, and is restarted:", err)
		}
		for p = nil; p == nil; {
			if !s.backOff(begun) {
				return
			}
			var err error
			begun = time.Now()
			if p, err = s.startProcess(); err != nil {
				fmt.Fprintln(os.Stderr, "start the pod's network in user space:", err)
			}
		}
	}
}

// backOff waits if a process has exited soon; false: the client is closed.
func (s *Client) backOff(begun time.Time) bool {
	if time.Since(begun) > steadyTime {
		return true
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-s.closing:
		return false
	case <-timer.C:
		return true
	}
}

// current returns the serving process, or nil.
func (s *Client) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Pause stops accepting traffic, for a process that is about to exit. It succeeds only if no flow
// is active.
func (s *Client) Pause() bool {
	p := s.current()
	if p == nil || p.channel.Send(stackproto.Message{Verb: stackproto.VerbPause}) != nil {
		return false
	}
	m, err := p.awaitReply(stackproto.VerbPaused)
	if err != nil {
		_ = p.cmd.Process.Kill() // its state is unknown: start another one
	}
	if err != nil || !m.Done {
		return false
	}
	s.paused = p
	return true
}

// Resume ends a Pause.
func (s *Client) Resume() {
	_ = s.paused.channel.Send(stackproto.Message{Verb: stackproto.VerbResume}) // fails if the process has exited
	s.paused = nil
}

// Close ends all flows.
func (s *Client) Close() {
	close(s.closing)
	s.running.Wait()
	s.closeTUN()
}
