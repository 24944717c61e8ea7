package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// herald is for a pod that systemd runs: it tells the front, which systemd knows, that
// the supervisor lives and how the pod is, and copies there what containers write. A
// front that comes later takes the place of the one before.
type herald struct {
	plan *pod.Plan
	left *estate
	beat chan struct{} // the loop is to prove that it lives: see alive

	mu   sync.Mutex
	at   *outpost // nil: nobody serves systemd
	said string   // the status that was told last
}

// outpost is a front's ends. The keeper holds them too, under the names below.
type outpost struct {
	Socket, Output int // descriptors; Output is -1 where no output is wanted
	wire.AttachRequest
	gone chan struct{}

	deaf bool // the output took nothing for a while
	lost int  // lines that it has missed since
}

const (
	frontName  = "front" // known to userns/keeper.c
	outputName = "front.output"
)

func newHerald(plan *pod.Plan, left *estate) *herald {
	return &herald{plan: plan, left: left, beat: make(chan struct{})}
}

// inherit takes up what the front gave the pod at its start.
func (h *herald) inherit() error {
	req, socket, output, ok, err := stage.Attached()
	if err != nil || !ok {
		return err
	}
	return h.station(&outpost{Socket: socket, Output: output, AttachRequest: req})
}

// attach takes copies of a later front's ends.
func (h *herald) attach(req *wire.AttachRequest, files []*os.File) error {
	if len(files) < 1 || len(files) > 2 || req.Every <= 0 {
		return fmt.Errorf("attach: %d descriptors, every %v", len(files), req.Every)
	}
	o := &outpost{Socket: -1, Output: -1, AttachRequest: *req}
	for i, fd := range []*int{&o.Socket, &o.Output} {
		if i >= len(files) {
			break
		}
		n, err := unix.FcntlInt(files[i].Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			o.close()
			return fmt.Errorf("attach: %w", err)
		}
		*fd = n
	}
	if err := h.station(o); err != nil {
		return err
	}
	h.mu.Lock()
	said := h.said
	h.mu.Unlock()
	if said != "" {
		h.send(said)
	}
	return nil
}

// station makes o the front that is told.
func (h *herald) station(o *outpost) error {
	if err := h.leave(o); err != nil {
		o.close()
		return err
	}
	h.mu.Lock()
	old := h.at
	o.gone = make(chan struct{})
	h.at = o
	h.mu.Unlock()
	if old != nil {
		close(old.gone)
		old.close()
	}
	go func() {
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-o.gone:
				return
			case <-tick.C:
			}
			select {
			case <-o.gone:
				return
			case h.beat <- struct{}{}:
			}
		}
	}()
	return nil
}

// leave gives the keeper an outpost's ends for the next supervisor.
func (h *herald) leave(o *outpost) error {
	err := h.left.keeper.KeepFD(frontName, o.Socket)
	h.left.keeper.Drop(outputName)
	if o.Output >= 0 {
		err = errors.Join(err, h.left.keeper.KeepFD(outputName, o.Output))
	}
	h.left.record(func(s *state) { s.Front = &o.AttachRequest })
	return err
}

func (o *outpost) close() {
	for _, fd := range []int{o.Socket, o.Output} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// alive is called by the loop, and by nobody else: a loop that hangs is not alive.
func (h *herald) alive() { h.send(wire.AliveMessage) }

// status tells the front how the pod is.
func (h *herald) status(st *pod.Status) {
	text := wire.StatusMessage + h.plan.Name + ": " + pod.Summarize(h.plan, st).String()
	h.mu.Lock()
	same := text == h.said
	h.said = text
	h.mu.Unlock()
	if !same {
		h.send(text)
	}
}

func (h *herald) send(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at != nil { // a front that has gone, or is behind, misses it
		_, _ = unix.SendmsgN(h.at.Socket, []byte(text), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
}

// patience is how long an output may take nothing before lines are dropped: journald
// being restarted must not cost any, and one that is stuck must not hold a container.
const patience = time.Second

// show copies whole lines of a container to the output.
func (h *herald) show(container string, lines []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.at
	if o == nil || o.Output < 0 || len(lines) == 0 {
		return
	}
	var text bytes.Buffer
	if o.lost > 0 {
		fmt.Fprintf(&text, "podrun: %d lines are missing here; podrun logs %s has them\n", o.lost, h.plan.Name)
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
		o.lost = 0
	} else {
		o.lost += bytes.Count(lines, []byte{'\n'})
	}
}

// write says whether the output took all of b.
func (o *outpost) write(b []byte) bool {
	wait := patience
	if o.deaf {
		wait = 0
	}
	for len(b) > 0 {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(o.Output), Events: unix.POLLOUT}}, int(wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if o.deaf = n == 0; n < 1 {
			return false
		}
		n, err = unix.SendmsgN(o.Output, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err == unix.ENOTSOCK { // a file, a terminal, a pipe: writable, so a page of it goes
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

// asleep is what was said last, and how often a doze is to tell that the pod lives; 0 for
// never.
func (h *herald) asleep() (said string, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		return "", 0
	}
	return h.said, h.at.Every
}
