package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a container's own, of tty: true. What it says goes through a pipe to the
// log, as other containers' output does, and is nowhere else on the way: it is spliced. So
// a supervisor that is killed loses nothing. The keeper has all of it too.
type terminal struct {
	master *os.File
	peer   *os.File // the other side: without it the terminal would end whenever no process has it open
	into   *os.File // the write end of the pipe to the log

	ended  bool   // there is nothing more to be had; known when nobody carries
	onEnd  func() // is called then, if the container may still live
	copied sync.WaitGroup
}

// openTerminal takes a container's terminal by its master, and the write end of the pipe to
// the log.
func openTerminal(master, into *os.File) (*terminal, error) {
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, fmt.Errorf("open the other side of the terminal: %w", errno)
	}
	return &terminal{master: master, peer: os.NewFile(peer, "terminal"), into: into}, nil
}

// begin carries what the terminal says to the pipe, until pause or finish.
func (t *terminal) begin() {
	t.master.SetReadDeadline(time.Time{})
	t.copied.Go(func() {
		raw, err := t.master.SyscallConn()
		for err == nil && !t.ended {
			err = raw.Read(t.carry)
		}
		if t.ended && t.onEnd != nil {
			t.onEnd()
		}
	})
}

// carry moves what there is. It says whether it is to be asked again before there is more.
// A full pipe holds it up: whoever reads that one must go on.
func (t *terminal) carry(master uintptr) bool {
	_, err := restarted(func() (int64, error) {
		n, err := unix.Splice(int(master), nil, int(t.into.Fd()), nil, maxPeek, 0)
		return int64(n), err // an int where processors have 32 bits
	})
	// EIO: everybody was made to let go of it, as at the end of a session.
	t.ended = err != nil && !errors.Is(err, unix.EAGAIN)
	return !errors.Is(err, unix.EAGAIN)
}

// pause stops the carrying: what comes from now on stays in the terminal.
func (t *terminal) pause() {
	t.master.SetReadDeadline(time.Unix(0, 1))
	t.copied.Wait()
}

// finish is for when the container's processes are gone: what they have written is carried
// to the pipe, to the last byte.
func (t *terminal) finish() {
	t.onEnd = nil
	t.pause()
	t.peer.Close()
	raw, err := t.master.SyscallConn()
	for more := !t.ended; err == nil && more; {
		err = raw.Control(func(fd uintptr) { more = t.carry(fd) && !t.ended })
	}
	t.master.Close()
	t.into.Close()
}
