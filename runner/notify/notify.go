package notify

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/handoff"
)

// Notifier serves a pod that runs as a systemd unit. It sends the watchdog's keep-alive messages and the
// pod's status to the notify target, which is the unit's process, and copies the containers' output there.
// A later notify target replaces the earlier one.
type Notifier struct {
	plan      *pod.Plan
	handoff   *handoff.Record
	Heartbeat chan struct{} // requests a keep-alive message from the loop: see Ping

	mu         sync.Mutex
	target     *notifyTarget // nil: the pod is not a systemd unit
	LastStatus string        // the status that was sent last
}

// notifyTarget holds the descriptors of the process that systemd supervises. Pod init holds them too, under
// the names protocol.KeptNotify and protocol.KeptOutput.
type notifyTarget struct {
	Socket, Output int // descriptors; Output is -1 if no output is wanted
	wire.NotifyRequest
	done chan struct{}

	blocked bool // the output has accepted nothing for writeTimeout; the next write does not wait
	dropped int  // number of lines that were dropped since the output last accepted any
}

// New returns the Notifier of a pod. It sends nothing if the pod is not a systemd unit.
func New(plan *pod.Plan, handoff *handoff.Record) *Notifier {
	return &Notifier{plan: plan, handoff: handoff, Heartbeat: make(chan struct{})}
}

// AcceptInherited takes over the descriptors that the notify target passed to the pod at its start.
func (h *Notifier) AcceptInherited() error {
	req, socket, output, ok, err := podinit.InheritedNotifyTarget()
	if err != nil || !ok {
		return err
	}
	return h.setTarget(&notifyTarget{Socket: socket, Output: output, NotifyRequest: req})
}

// SetTarget makes a later notify target the current one. It copies the target's descriptors.
func (h *Notifier) SetTarget(req *wire.NotifyRequest, files []*os.File) error {
	if len(files) < 1 || len(files) > 2 || req.Every <= 0 {
		return fmt.Errorf("set the notify target: want 1 or 2 descriptors and an interval, have %d and %v", len(files), req.Every)
	}
	o := &notifyTarget{Socket: -1, Output: -1, NotifyRequest: *req}
	for i, fd := range []*int{&o.Socket, &o.Output} {
		if i >= len(files) {
			break
		}
		n, err := unix.FcntlInt(files[i].Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			o.close()
			return fmt.Errorf("set the notify target: %w", err)
		}
		*fd = n
	}
	if err := h.setTarget(o); err != nil {
		return err
	}
	h.mu.Lock()
	status := h.LastStatus
	h.mu.Unlock()
	if status != "" {
		h.send(status)
	}
	return nil
}

// setTarget makes o the notify target.
func (h *Notifier) setTarget(o *notifyTarget) error {
	if err := h.handOver(o); err != nil {
		o.close()
		return err
	}
	h.mu.Lock()
	old := h.target
	o.done = make(chan struct{})
	h.target = o
	h.mu.Unlock()
	if old != nil {
		close(old.done)
		old.close()
	}
	go func() {
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-o.done:
				return
			case <-tick.C:
			}
			select {
			case <-o.done:
				return
			case h.Heartbeat <- struct{}{}:
			}
		}
	}()
	return nil
}

// handOver passes a target's descriptors to pod init for the next supervisor.
func (h *Notifier) handOver(o *notifyTarget) error {
	err := h.handoff.PodInit.KeepFD(protocol.KeptNotify, o.Socket)
	h.handoff.PodInit.Drop(protocol.KeptOutput)
	if o.Output >= 0 {
		err = errors.Join(err, h.handoff.PodInit.KeepFD(protocol.KeptOutput, o.Output))
	}
	h.handoff.Update(func(s *handoff.State) { s.Notify = &o.NotifyRequest })
	return err
}

func (o *notifyTarget) close() {
	for _, fd := range []int{o.Socket, o.Output} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Ping sends the watchdog's keep-alive message. Only the loop calls it, so that a loop that hangs sends none.
func (h *Notifier) Ping() { h.send(protocol.NotifyWatchdog) }

// SendStatus sends the pod's status to the notify target.
func (h *Notifier) SendStatus(st *pod.Status) {
	text := protocol.NotifyStatus + h.plan.Name + ": " + pod.Summarize(h.plan, st).String()
	h.mu.Lock()
	same := text == h.LastStatus
	h.LastStatus = text
	h.mu.Unlock()
	if !same {
		h.send(text)
	}
}

func (h *Notifier) send(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.target != nil { // a target that has exited, or does not read, misses it
		_, _ = unix.SendmsgN(h.target.Socket, []byte(text), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
}

// writeTimeout is how long an output may block before lines are dropped: a restart of journald must not
// lose any, and a stuck journald must not block a container.
const writeTimeout = time.Second

// CopyLines copies whole lines of a container to the output.
func (h *Notifier) CopyLines(container string, lines []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.target
	if o == nil || o.Output < 0 || len(lines) == 0 {
		return
	}
	var text bytes.Buffer
	if o.dropped > 0 {
		fmt.Fprintf(&text, "podrun: %d lines are missing here; podrun logs %s shows them\n", o.dropped, h.plan.Name)
	}
	prefix := o.Label
	if len(h.plan.Containers)+len(h.plan.InitContainers) > 1 || prefix != "" {
		prefix += container + " | "
	}
	for line := range bytes.Lines(lines) {
		text.WriteString(prefix)
		text.Write(line)
	}
	if o.write(text.Bytes()) {
		o.dropped = 0
	} else {
		o.dropped += bytes.Count(lines, []byte{'\n'})
	}
}

// write reports whether the output accepted all of b.
func (o *notifyTarget) write(b []byte) bool {
	wait := writeTimeout
	if o.blocked {
		wait = 0
	}
	for len(b) > 0 {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(o.Output), Events: unix.POLLOUT}}, int(wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if o.blocked = n == 0; n < 1 {
			return false
		}
		n, err = unix.SendmsgN(o.Output, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err == unix.ENOTSOCK { // a file, terminal or pipe: if it is writable it accepts a page
			n, err = unix.Write(o.Output, b[:min(len(b), 4096)])
		}
		switch err {
		case nil:
			b = b[n:]
		case unix.EINTR, unix.EAGAIN:
		default:
			return false
		}
	}
	return true
}

// HibernationState returns the last status that was sent, and the interval of the keep-alive messages that pod
// init has to send during hibernation; 0: it sends none.
func (h *Notifier) HibernationState() (status string, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.target == nil {
		return "", 0
	}
	return h.LastStatus, h.target.Every
}
