package procfs

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process identifies a process of the pod by pid and start time, because pids are reused.
type Process struct {
	PID       int
	StartTime uint64 // in ticks since boot
}

// Kill sends a signal to the process, unless its pid has been reused.
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

// Exiting reports whether the process has exited, or the kernel is ending it. The kernel sets this
// before it takes any resource from the process.
func (p Process) Exiting() bool {
	st, err := readStat(p.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	return st.Process != p || st.Exiting
}

// SignalUnreaped sends a signal to a process whose pid cannot be reused, because it has not been
// reaped. It opens no descriptor. A process that has exited is no error.
func (p Process) SignalUnreaped(sig unix.Signal) error {
	if err := unix.Kill(p.PID, sig); err != unix.ESRCH {
		return err
	}
	return nil
}

// Stat is the content of /proc/PID/stat.
type Stat struct {
	Process
	Comm    string
	State   byte
	PPID    int
	Exiting bool // it has exited, or the kernel is ending it
}

// pfExiting is the kernel's PF_EXITING.
const pfExiting = 0x4

// Lookup reads a process; ok is false if there is none.
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

var errMalformed = errors.New("malformed /proc/PID/stat")

// Args returns the arguments of a process; none if there is no such process.
func Args(pid int) []string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
