// Package stackproc has a pod's traffic carried by a network stack in user space (package
// netstack) in a process of its own: it links much that most pods never need. The process
// lives as long as the channel to it is open, so it ends with who began it, however that
// ends.
package stackproc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
)

// Stage is the first argument of the process of the stack.
const Stage = "_netstack"

// Names is where the pod's resolver is asked: what is for the router's own addresses does
// not come to a stack.
var Names = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// Stack is a pod's. Should its process end, another one is begun: what was under way is
// lost.
type Stack struct {
	program string
	config  egress.Config
	tun     int // kept for another process; no file of Go's, which would wake for every packet

	over    sync.WaitGroup
	closing chan struct{}

	mu     sync.Mutex
	served *process // nil while there is none
	paused *process
}

// process is one of the stack.
type process struct {
	cmd     *exec.Cmd
	channel *Channel
	answers chan Message // Begun, Paused
}

// Serve begins to serve a pod by its wires, which it takes. program has Stage.
func Serve(program string, c egress.Config, wires netns.Wires) (*Stack, error) {
	s := &Stack{program: program, config: c, tun: -1, closing: make(chan struct{})}
	err := s.take(wires)
	var p *process
	if err == nil {
		p, err = s.begin()
	}
	if err != nil {
		s.drop()
		return nil, fmt.Errorf("serve the pod's network in user space: %w", err)
	}
	s.over.Go(func() { s.keep(p) })
	return s, nil
}

func (s *Stack) take(wires netns.Wires) (err error) {
	defer wires.Close()
	s.tun, err = brief.Copy(wires[netns.WirePackets])
	return err
}

func (s *Stack) drop() {
	if s.tun >= 0 {
		unix.Close(s.tun)
	}
}

const (
	answerTime = 10 * time.Second // for what takes a moment
	steady     = 10 * time.Second // of a process that may be followed at once when it ends
)

// begin starts a process.
func (s *Stack) begin() (*process, error) {
	here, away, err := Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	end := os.NewFile(uintptr(away), "channel")
	defer end.Close()
	cmd := exec.Command(s.program, Stage)
	cmd.Args[0] = "podrun"
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{end}
	p := &process{cmd: cmd, channel: &Channel{conn: here}, answers: make(chan Message, 1)}
	if err := cmd.Start(); err != nil {
		here.Close()
		return nil, err
	}
	c := Config{Pool: s.config.Pool, Slot: s.config.Slot, HostLoopback: s.config.HostLoopback, Names: s.config.Names != nil}
	err = p.channel.Send(Message{Verb: Begin, Config: &c}, s.tun)
	s.over.Go(func() { s.hear(p) })
	if err == nil {
		var m Message
		if m, err = p.answer(Begun); err == nil && m.Error != "" {
			err = errors.New(m.Error)
		}
	}
	if err != nil {
		p.end()
		return nil, err
	}
	s.mu.Lock()
	s.served = p
	s.mu.Unlock()
	return p, nil
}

// answer waits for an answer.
func (p *process) answer(verb string) (Message, error) {
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case m, ok := <-p.answers:
		if !ok {
			return m, errors.New("the process has ended")
		}
		if m.Verb != verb {
			return m, fmt.Errorf("the process says %s, not %s", m.Verb, verb)
		}
		return m, nil
	case <-timer.C:
		return Message{}, errors.New("the process does not answer")
	}
}

// end ends a process.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
	p.channel.Close()
}

// keep follows one process by the next.
func (s *Stack) keep(p *process) {
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
			if !s.rest(begun) {
				return
			}
			var err error
			begun = time.Now()
			if p, err = s.begin(); err != nil {
				fmt.Fprintln(os.Stderr, "begin the pod's network in user space:", err)
			}
		}
	}
}

// rest waits where a process has ended soon; false: there is to be no other.
func (s *Stack) rest(begun time.Time) bool {
	if time.Since(begun) > steady {
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
func (s *Stack) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Pause stops taking what comes, for a process that is about to end, if nothing is under
// way.
func (s *Stack) Pause() bool {
	p := s.current()
	if p == nil || p.channel.Send(Message{Verb: Pause}) != nil {
		return false
	}
	m, err := p.answer(Paused)
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
func (s *Stack) Resume() {
	_ = s.paused.channel.Send(Message{Verb: Resume}) // unless it has ended
	s.paused = nil
}

// Close ends all that is under way.
func (s *Stack) Close() {
	close(s.closing)
	s.over.Wait()
	s.drop()
}
