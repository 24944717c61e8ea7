package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
)

// Processes are the processes of the host at one moment, for groups without a cgroup of their own.
type Processes struct {
	at    time.Time
	proc  string // /proc
	byPID map[int]procfs.Stat
	below map[int][]int // children
}

// ReadProcesses reads all processes.
func ReadProcesses() (*Processes, error) { return readProcesses("/proc") }

func readProcesses(proc string) (*Processes, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := &Processes{at: time.Now(), proc: proc, byPID: map[int]procfs.Stat{}, below: map[int][]int{}}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, name, "stat"))
		if err != nil {
			continue // it has ended
		}
		if p, err := procfs.ParseStat(pid, string(text)); err == nil {
			all.byPID[pid] = p
			all.below[p.PPID] = append(all.below[p.PPID], pid)
		}
	}
	return all, nil
}

// Find returns the process of this user that was executed with matching arguments; of several it
// returns their common ancestor.
func (a *Processes) Find(match func(args []string) bool) (pid int, ok bool) {
	var found []int
	for pid := range a.byPID {
		text, err := os.ReadFile(a.file(pid, "cmdline"))
		if err != nil || !match(strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")) {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(a.file(pid, ""), &st) == nil && st.Uid == uint32(os.Getuid()) {
			found = append(found, pid)
		}
	}
	for _, pid := range found {
		if !slices.Contains(found, a.byPID[pid].PPID) {
			return pid, true
		}
	}
	return 0, false
}

func (a *Processes) file(pid int, name string) string {
	return filepath.Join(a.proc, strconv.Itoa(pid), name)
}

// Below returns the descendants of a process.
func (a *Processes) Below(pid int) []int {
	all := slices.Clone(a.below[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, a.below[all[i]]...)
	}
	return all
}

// FindInner returns the process among pids that has the number inner in a PID namespace below this one.
func (a *Processes) FindInner(pids []int, inner int) (pid int, ok bool) {
	i := slices.IndexFunc(pids, func(pid int) bool { return a.innerPID(pid) == inner })
	if i < 0 {
		return 0, false
	}
	return pids[i], true
}

// Inside returns the processes among pids that share the mount namespace of a process: the processes of the
// container of which it is the first one, including processes that were executed in it later.
func (a *Processes) Inside(pids []int, first int) []int {
	space, err := os.Readlink(a.file(first, "ns/mnt"))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		of, err := os.Readlink(a.file(pid, "ns/mnt"))
		return err != nil || of != space
	})
}

// innerPID returns a process's pid in its own, directly nested PID namespace; 0: it has none.
func (a *Processes) innerPID(pid int) int {
	text, err := os.ReadFile(a.file(pid, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(rest); len(f) > 1 {
				n, _ := strconv.Atoi(f[1])
				return n
			}
		}
	}
	return 0
}

// clockTick is the unit of times in /proc: USER_HZ, which is 100 on all of Linux.
const clockTick = time.Second / 100

// maxSummed limits how many processes' memory is read: each read is slow in the kernel.
const maxSummed = 1000

// Sum returns the usage of processes: their time, their threads, and their memory, with shared
// memory counted proportionally. I/O is unknown: its counters disappear with the processes.
func (a *Processes) Sum(pids []int) Sample {
	s := Sample{At: a.at, CPU: new(a.CPUTime(pids)), Pids: new(int64)}
	var memory int64
	known := len(pids) <= maxSummed
	for _, pid := range pids {
		*s.Pids += a.byPID[pid].Threads
		if known {
			n, err := a.memory(pid)
			if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
				known = false
			}
			memory += n
		}
	}
	if known {
		s.Memory = &memory
	}
	return s
}

// CPUTime returns the processor time of processes and of the children that they have reaped.
func (a *Processes) CPUTime(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += time.Duration(a.byPID[pid].Ticks) * clockTick
	}
	return sum
}

// memory returns a process's proportional share, in bytes.
func (a *Processes) memory(pid int) (int64, error) {
	text, err := os.ReadFile(a.file(pid, "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, nil // a zombie, or a kernel thread
}
