package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// timing are the system calls whose number depends on the scheduler: of the Go runtime, its memory
// and its signals, of threads and of waits. They are not counted.
var timing = regexp.MustCompile(`^(nanosleep|clock_nanosleep|futex|sched_yield|sched_getaffinity|epoll_.*|poll|ppoll|wait4|waitid|restart_syscall|` +
	`mmap|munmap|mprotect|madvise|brk|rt_sig.*|sigaltstack|gettid|getpid|tgkill|exit|exit_group|` +
	`clone|clone3|fork|vfork|set_robust_list|rseq|set_tid_address|clock_gettime|read|recvmsg|recvfrom)$`)

// calls are what a trace contains of a part of a command.
type calls struct {
	byName                            map[string]int // without timing
	processes, execs, syncs, bytesOut int
}

// measures returns the counts by the names of the file of expected counts.
func (c calls) measures() map[string]float64 {
	sum := 0
	m := map[string]float64{}
	for name, n := range c.byName {
		sum += n
		m[callPrefix+name] = float64(n)
	}
	m["calls"], m["processes"], m["execs"], m["syncs"], m["bytes"] = float64(sum), float64(c.processes), float64(c.execs), float64(c.syncs), float64(c.bytesOut)
	return m
}

// callLine is a call and its result in strace's output, with -f and -y.
var callLine = regexp.MustCompile(`^(\w+)\((.*)\)? += (-?\d+|\?|0x[0-9a-f]+)(?:<.*>)?(?: (E\w+|\?))?`)

// completed returns the calls of a trace that have returned, in the order of their returns.
// A call that another process interrupts in the trace is put together.
func completed(file string) (list []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	begun := map[string]string{} // by pid
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		pid, text, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			continue
		}
		text = strings.TrimLeft(text, " ")
		if head, unfinished := strings.CutSuffix(text, " <unfinished ...>"); unfinished {
			begun[pid] = head
			continue
		}
		if _, tail, resumed := strings.Cut(text, " resumed>"); resumed && strings.HasPrefix(text, "<... ") {
			text = begun[pid] + tail
			delete(begun, pid)
		}
		list = append(list, text)
	}
	return list, lines.Err()
}

// count counts calls. An interrupted call, or one that would block, does not count: it is repeated.
func count(lines []string) calls {
	c := calls{byName: map[string]int{}}
	for _, line := range lines {
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, args, result, failure := m[1], m[2], m[3], m[4]
		if failure == "EAGAIN" || failure == "EINTR" || failure == "?" {
			continue
		}
		if !timing.MatchString(name) && !strings.Contains(args, "<anon_inode:[event") {
			c.byName[name]++
		}
		switch name {
		case "fork", "vfork":
			c.processes++
		case "clone", "clone3":
			if !strings.Contains(args, "CLONE_THREAD") && failure == "" {
				c.processes++
			}
		case "execve", "execveat":
			if failure == "" {
				c.execs++
			}
		case "fsync", "fdatasync", "syncfs", "sync":
			c.syncs++
		case "write", "pwrite64", "writev", "pwritev":
			if n, err := strconv.Atoi(result); err == nil && n > 0 && toFile(args) {
				c.bytesOut += n
			}
		}
	}
	return c
}

// toFile reports whether the descriptor of a write, FD<PATH>, is of a file: not of a socket, a pipe,
// a device, or a file of the kernel.
func toFile(args string) bool {
	_, path, _ := strings.Cut(args, "<")
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/sys/") && !strings.HasPrefix(path, "/dev/null")
}

// quiet returns a function that returns nil once a trace has not grown since its last call.
func quiet(file string) func() error {
	var last int64 = -1
	return func() error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if was := last; was != info.Size() {
			last = info.Size()
			return fmt.Errorf("%s grows: %d bytes, then %d", file, was, last)
		}
		return nil
	}
}
