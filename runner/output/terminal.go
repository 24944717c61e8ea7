package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a container's own, of tty: true. What it says goes through a pipe to the
// log, as other containers' output does, and is nowhere else on the way: it is spliced. So
// a supervisor that is killed loses nothing. The keeper has all of it too.
type Terminal struct {
	Master  *os.File
	Peer    *os.File // the other side: without it the terminal would end whenever no process has it open
	LogPipe *os.File // the write end of the pipe to the log

	ended   bool   // there is nothing more to be had; known when nobody carries
	OnEnd   func() // is called then, if the container may still live
	copying sync.WaitGroup
}

// OpenTerminal takes a container's terminal by its master, and the write end of the pipe to
// the log.
func OpenTerminal(master, into *os.File) (*Terminal, error) {
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, fmt.Errorf("open the other side of the terminal: %w", errno)
	}
	return &Terminal{Master: master, Peer: os.NewFile(peer, "terminal"), LogPipe: into}, nil
}

// Start carries what the terminal says to the pipe, until pause or finish.
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

// copyOnce moves what there is. It says whether it is to be asked again before there is more.
// A full pipe holds it up: whoever reads that one must go on.
func (t *Terminal) copyOnce(master uintptr) bool {
	_, err := retryEINTR(func() (int64, error) {
		n, err := unix.Splice(int(master), nil, int(t.LogPipe.Fd()), nil, maxBatch, 0)
		return int64(n), err // an int where processors have 32 bits
	})
	// EIO: everybody was made to let go of it, as at the end of a session.
	t.ended = err != nil && !errors.Is(err, unix.EAGAIN)
	return !errors.Is(err, unix.EAGAIN)
}

// Pause stops the carrying: what comes from now on stays in the terminal.
func (t *Terminal) Pause() {
	t.Master.SetReadDeadline(time.Unix(0, 1))
	t.copying.Wait()
}

// Finish is for when the container's processes are gone: what they have written is carried
// to the pipe, to the last byte.
func (t *Terminal) Finish() {
	t.OnEnd = nil
	t.Pause()
	t.Peer.Close()
	raw, err := t.Master.SyscallConn()
	for more := !t.ended; err == nil && more; {
		err = raw.Control(func(fd uintptr) { more = t.copyOnce(fd) && !t.ended })
	}
	t.Master.Close()
	t.LogPipe.Close()
}
