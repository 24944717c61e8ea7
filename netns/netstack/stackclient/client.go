// Package stackclient has a pod's traffic carried by a network stack in user space (package
// netstack) in a process of its own: it links much that most pods never need. The process
// lives as long as the channel to it is open, so it ends with who began it, however that
// ends.
package stackclient

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
)

// Client is a pod's. Should its process end, another one is begun: what was under way is
// lost.
type Client struct {
	program string
	config  egress.Config
	tun     int // kept for another process; no file of Go's, which would wake for every packet

	running sync.WaitGroup
	closing chan struct{}

	mu     sync.Mutex
	served *process // nil while there is none
	paused *process
}

// process is one of the stack.
type process struct {
	cmd     *exec.Cmd
	channel *stackproto.Channel
	replies chan stackproto.Message // Begun, Paused
}

// Start begins to serve a pod by its wires, which it takes. program has Stage.
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
	replyTimeout = 10 * time.Second // for what takes a moment
	steadyTime   = 10 * time.Second // of a process that may be followed at once when it ends
)

// startProcess starts a process.
func (s *Client) startProcess() (*process, error) {
	here, away, err := stackproto.SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	end := os.NewFile(uintptr(away), "channel")
	defer end.Close()
	cmd := exec.Command(s.program, stackproto.StageName)
	cmd.Args[0] = "podrun"
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{end}
	p := &process{cmd: cmd, channel: &stackproto.Channel{Conn: here}, replies: make(chan stackproto.Message, 1)}
	if err := cmd.Start(); err != nil {
		here.Close()
		return nil, err
	}
	c := stackproto.Config{Pool: s.config.Pool, Slot: s.config.Slot, HostLoopback: s.config.HostLoopback, Names: s.config.Names != nil}
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
			return m, fmt.Errorf("the process says %s, not %s", m.Verb, verb)
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

// superviseProcess follows one process by the next.
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
			fmt.Fprintln(os.Stderr, "the pod's network in user space has ended, and is begun again:", err)
		}
		for p = nil; p == nil; {
			if !s.backOff(begun) {
				return
			}
			var err error
			begun = time.Now()
			if p, err = s.startProcess(); err != nil {
				fmt.Fprintln(os.Stderr, "begin the pod's network in user space:", err)
			}
		}
	}
}

// backOff waits where a process has ended soon; false: there is to be no other.
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

// current is the process that serves, or nil.
func (s *Client) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Pause stops taking what comes, for a process that is about to end, if nothing is under
// way.
func (s *Client) Pause() bool {
	p := s.current()
	if p == nil || p.channel.Send(stackproto.Message{Verb: stackproto.VerbPause}) != nil {
		return false
	}
	m, err := p.awaitReply(stackproto.VerbPaused)
	if err != nil {
		_ = p.cmd.Process.Kill() // who knows what it does: another one is begun
	}
	if err != nil || !m.Done {
		return false
	}
	s.paused = p
	return true
}

// Resume ends a Pause.
func (s *Client) Resume() {
	_ = s.paused.channel.Send(stackproto.Message{Verb: stackproto.VerbResume}) // unless it has ended
	s.paused = nil
}

// Close ends all that is under way.
func (s *Client) Close() {
	close(s.closing)
	s.running.Wait()
	s.closeTUN()
}
