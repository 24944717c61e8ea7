package runner

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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

// signalUnreaped sends a signal to a process whose number cannot be another's, as its end
// has not been taken. It opens nothing. One that has ended is fine.
func (p process) signalUnreaped(sig unix.Signal) error {
	if err := unix.Kill(p.PID, sig); err != unix.ESRCH {
		return err
	}
	return nil
}

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
