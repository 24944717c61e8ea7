package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
)

// process is one of the pod's: number and start time, since numbers are used again.
type process struct {
	PID   int
	Start uint64 // ticks since the machine's start
}

// kill sends a signal to the process, unless the number is another one's by now.
func (p process) kill(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if st, ok := stat(p.PID); !ok || st.process != p {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// ending says whether the process has ended, or the kernel is ending it. The kernel says so
// before it takes anything from the process.
func (p process) ending() bool {
	st, err := look(p.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	return st.process != p || st.ending
}

// keeperOf is this supervisor's keeper: nobody, if that has ended already and another is
// the parent.
func keeperOf() process {
	st, ok := stat(stage.KeeperPID())
	if !ok || st.name != "podrun-keeper" {
		return process{}
	}
	return st.process
}

// signalUnreaped sends a signal to a process whose number cannot be another's, as its end
// has not been taken. It opens nothing. One that has ended is fine.
func (p process) signalUnreaped(sig unix.Signal) error {
	if err := unix.Kill(p.PID, sig); err != unix.ESRCH {
		return err
	}
	return nil
}

// ends tells how processes have ended. Those of this supervisor are its children, which
// stay zombies until their end is on record; those of an earlier one are the keeper's,
// which keeps the end.
type ends struct {
	keeper *stage.Keeper

	mu    sync.Mutex
	known map[process]*end // of earlier supervisors' processes
	early bool             // it is not known yet which of them are wanted
}

type end struct {
	wanted bool
	told   chan stage.Exit
}

func newEnds(keeper *stage.Keeper) *ends {
	return &ends{keeper: keeper, known: map[process]*end{}, early: true}
}

// adopt asks for the end of an earlier supervisor's process. Of one that is gone already
// the keeper tells at once; should it know nothing of it, the end is unknown.
func (e *ends) adopt(p process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(p).wanted = true
	if st, ok := stat(p.PID); !ok || st.process != p {
		time.AfterFunc(tellTime, func() {
			e.told(stage.Exit{PID: p.PID, Start: p.Start, Status: unknownEnd, At: bootTime()})
		})
	}
}

// of finds a process's end, or makes it. The caller holds mu.
func (e *ends) of(p process) *end {
	if e.known[p] == nil {
		e.known[p] = &end{told: make(chan stage.Exit, 1)}
	}
	return e.known[p]
}

// adopted lets the keeper forget the ends that nobody has asked for.
func (e *ends) adopted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.early = false
	for p, end := range e.known {
		if !end.wanted {
			delete(e.known, p)
			e.keeper.Forget(p.PID, p.Start)
		}
	}
}

// told takes an end from the keeper.
func (e *ends) told(x stage.Exit) {
	p := process{x.PID, x.Start}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.early && e.known[p] == nil {
		e.keeper.Forget(x.PID, x.Start)
		return
	}
	select {
	case e.of(p).told <- x:
	default: // it is known already
	}
}

const (
	tellTime   = 5 * time.Second
	unknownEnd = 255 << 8 // exit code 255
)

// wait returns how a process has ended, and leaves the end where it is until forget.
func (e *ends) wait(p process) (x stage.Exit, err error) {
	e.mu.Lock()
	known := e.known[p]
	e.mu.Unlock()
	if known != nil {
		x = <-known.told
		select {
		case known.told <- x: // for the next who asks
		default:
		}
		return x, nil
	}
	x = stage.Exit{PID: p.PID, Start: p.Start}
	x.Status, err = childEnd(p.PID)
	x.At = bootTime()
	return x, err
}

// forget lets the end of a process go: it is on record.
func (e *ends) forget(p process) {
	e.mu.Lock()
	known := e.known[p]
	delete(e.known, p)
	e.mu.Unlock()
	if known != nil {
		e.keeper.Forget(p.PID, p.Start)
		return
	}
	for {
		if _, err := unix.Wait4(p.PID, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// childEnd waits for the end of a child and does not reap it.
func childEnd(pid int) (syscall.WaitStatus, error) {
	awaitEnd(pid)
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("wait for process %d: %w", pid, err)
		}
		break
	}
	// After signo, errno and code, aligned as a pointer is: pid, uid, status.
	words := (*[32]int32)(unsafe.Pointer(&info))
	status := words[3+(unsafe.Sizeof(uintptr(0))/4-1)+2]
	if info.Code == cldExited {
		return syscall.WaitStatus(status << 8), nil
	}
	return syscall.WaitStatus(status), nil
}

// awaitEnd waits for the end of a process without a thread for it, if there is a
// descriptor to be had: who waits in a system call has a thread and its memory.
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // Linux 5.10
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "process")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// cldExited is CLD_EXITED: the status is an exit code, not a signal.
const cldExited = 1

func bootTime() time.Duration { return readClocks().Boot }

// procStat is what /proc/PID/stat tells.
type procStat struct {
	process
	name   string
	state  byte
	parent int
	ending bool // it has ended, or the kernel is ending it
}

// exiting is the kernel's PF_EXITING.
const exiting = 0x4

// stat looks at a process; ok is false if there is none.
func stat(pid int) (s procStat, ok bool) {
	s, err := look(pid)
	return s, err == nil
}

func look(pid int) (s procStat, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')')
	if i < 0 {
		return s, errNoStat
	}
	f := strings.Fields(rest[i+1:]) // from the third field on
	if len(f) < 20 {
		return s, errNoStat
	}
	s.PID, s.name, s.state = pid, rest[:i], f[0][0]
	s.parent, _ = strconv.Atoi(f[1])
	flags, _ := strconv.ParseUint(f[6], 10, 64)
	s.ending = flags&exiting != 0 || s.state == 'Z'
	s.Start, err = strconv.ParseUint(f[19], 10, 64)
	return s, err
}

var errNoStat = errors.New("what /proc tells of a process cannot be read")
