package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is the terminal of a container with tty: true. Its output is spliced into a pipe, and logged from
// there like other containers' output. No other buffer has it on the way, and pod init holds all descriptors, too:
// so a supervisor that is killed loses nothing.
type Terminal struct {
	Master  *os.File
	Peer    *os.File // the slave: without it the terminal would report an end whenever no process has it open
	LogPipe *os.File // the write end of the pipe to the log

	ended   bool   // end of file was reached; read it only when nothing copies
	OnEnd   func() // is called at end of file, while the container may still run
	copying sync.WaitGroup
}

// OpenTerminal returns the Terminal for a container's terminal master and the write end of the pipe to the
// log.
func OpenTerminal(master, into *os.File) (*Terminal, error) {
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, fmt.Errorf("open the other side of the terminal: %w", errno)
	}
	return &Terminal{Master: master, Peer: os.NewFile(peer, "terminal"), LogPipe: into}, nil
}

// Start copies the terminal's output to the pipe until Suspend or Finish.
func (t *Terminal) Start() {
	t.Master.SetReadDeadline(time.Time{})
	t.copying.Go(func() {
		raw, err := t.Master.SyscallConn()
		for err == nil && !t.ended {
			err = raw.Read(t.copyOnce)
		}
		if t.ended && t.OnEnd != nil {
			t.OnEnd()
		}
	})
}

// copyOnce moves the available output. It reports whether to call it again without waiting for more. It
// blocks while the pipe is full, so the pipe's reader must go on.
func (t *Terminal) copyOnce(master uintptr) bool {
	_, err := retryEINTR(func() (int64, error) {
		n, err := unix.Splice(int(master), nil, int(t.LogPipe.Fd()), nil, maxBatch, 0)
		return int64(n), err // an int on 32-bit processors
	})
	// EIO: the terminal was hung up, as at the end of a session.
	t.ended = err != nil && !errors.Is(err, unix.EAGAIN)
	return !errors.Is(err, unix.EAGAIN)
}

// Suspend stops the copying: later output stays in the terminal.
func (t *Terminal) Suspend() {
	t.Master.SetReadDeadline(time.Unix(0, 1))
	t.copying.Wait()
}

// Finish copies the rest of the output to the pipe, to the last byte, and closes the terminal. It is called
// when the container's processes have exited.
func (t *Terminal) Finish() {
	t.OnEnd = nil
	t.Suspend()
	t.Peer.Close()
	raw, err := t.Master.SyscallConn()
	for more := !t.ended; err == nil && more; {
		err = raw.Control(func(fd uintptr) { more = t.copyOnce(fd) && !t.ended })
	}
	t.Master.Close()
	t.LogPipe.Close()
}
