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
	Threads int64
	Ticks   int64 // processor time of it and of its reaped children, in clock ticks
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
	return ParseStat(pid, string(b))
}

// ParseStat parses the stat file of a process. A program can choose any name: the name ends at the
// last parenthesis.
func ParseStat(pid int, text string) (s Stat, err error) {
	_, rest, _ := strings.Cut(text, "(")
	i := strings.LastIndexByte(rest, ')')
	if i < 0 {
		return s, errMalformed
	}
	f := strings.Fields(rest[i+1:]) // from the third field on
	if len(f) < 20 {
		return s, errMalformed
	}
	s.PID, s.Comm, s.State = pid, rest[:i], f[0][0]
	number := func(field int) int64 { // as in proc_pid_stat(5)
		n, _ := strconv.ParseInt(f[field-3], 10, 64)
		return n
	}
	s.PPID, s.Threads = int(number(4)), number(20)
	s.Ticks = number(14) + number(15) + number(16) + number(17) // utime, stime, cutime, cstime
	s.Exiting = number(9)&pfExiting != 0 || s.State == 'Z'
	s.StartTime, err = strconv.ParseUint(f[19], 10, 64)
	return s, err
}

var errMalformed = errors.New("malformed /proc/PID/stat")

// Args returns the arguments of a process; none if there is no such process.
func Args(pid int) []string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}
