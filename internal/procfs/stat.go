package procfs

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is one of the pod's: number and start time, since numbers are used again.
type Process struct {
	PID       int
	StartTime uint64 // ticks since the machine's start
}

// Kill sends a signal to the process, unless the number is another one's by now.
func (p Process) Kill(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if st, ok := Lookup(p.PID); !ok || st.Process != p {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// Exiting says whether the process has ended, or the kernel is ending it. The kernel says so
// before it takes anything from the process.
func (p Process) Exiting() bool {
	st, err := readStat(p.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	return st.Process != p || st.Exiting
}

// SignalUnreaped sends a signal to a process whose number cannot be another's, as its end
// has not been taken. It opens nothing. One that has ended is fine.
func (p Process) SignalUnreaped(sig unix.Signal) error {
	if err := unix.Kill(p.PID, sig); err != unix.ESRCH {
		return err
	}
	return nil
}

// Stat is what /proc/PID/stat tells.
type Stat struct {
	Process
	Comm    string
	State   byte
	PPID    int
	Exiting bool // it has ended, or the kernel is ending it
}

// pfExiting is the kernel's PF_EXITING.
const pfExiting = 0x4

// Lookup looks at a process; ok is false if there is none.
func Lookup(pid int) (s Stat, ok bool) {
	s, err := readStat(pid)
	return s, err == nil
}

func readStat(pid int) (s Stat, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')')
	if i < 0 {
		return s, errMalformed
	}
	f := strings.Fields(rest[i+1:]) // from the third field on
	if len(f) < 20 {
		return s, errMalformed
	}
	s.PID, s.Comm, s.State = pid, rest[:i], f[0][0]
	s.PPID, _ = strconv.Atoi(f[1])
	flags, _ := strconv.ParseUint(f[6], 10, 64)
	s.Exiting = flags&pfExiting != 0 || s.State == 'Z'
	s.StartTime, err = strconv.ParseUint(f[19], 10, 64)
	return s, err
}

var errMalformed = errors.New("what /proc tells of a process cannot be read")
