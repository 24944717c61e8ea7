package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/test/internal/measure"
)

// footprint is the memory of an engine's processes for one running pod, without the pod's own
// processes.
type footprint struct {
	Processes  int              `json:"processes"`
	PSS        int64            `json:"pssKiB"`
	Each       map[string]share `json:"each"`       // by the program's name
	Unreadable int              `json:"unreadable"` // processes whose memory this user may not read
}

// share is the memory of the processes of one program.
type share struct {
	Processes int   `json:"processes"`
	PSS       int64 `json:"pssKiB"`
}

// processes returns the command lines of the user's processes, by pid.
func (p *account) processes() map[int]string {
	found := map[int]string{}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		uid, ok := realUID(dir)
		if ok && p.owns(uid) {
			line, _ := os.ReadFile(dir + "/cmdline")
			found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

func realUID(dir string) (uint64, bool) {
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0, false // it has exited
	}
	_, rest, ok := strings.Cut(string(status), "\nUid:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	uid, err := strconv.ParseUint(fields[0], 10, 32)
	return uid, err == nil
}

// footprint measures the processes that were not there before.
func (p *account) footprint(before map[int]string) footprint {
	f := footprint{Each: map[string]share{}}
	now := p.processes()
	for _, pid := range slices.Sorted(maps.Keys(now)) {
		if _, old := before[pid]; old || strings.Contains(now[pid], payload) || pid == os.Getpid() {
			continue
		}
		comm, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		pss, err2 := measure.PSS(pid)
		switch {
		case errors.Is(err2, fs.ErrPermission):
			f.Unreadable++
		case err1 != nil || err2 != nil:
			continue // it has exited
		}
		f.Processes++
		f.PSS += pss
		name := strings.TrimSpace(string(comm))
		f.Each[name] = share{f.Each[name].Processes + 1, f.Each[name].PSS + pss}
	}
	return f
}

// descendantsPSS returns the memory, as PSS in KiB, of all descendants of this program; other
// processes of the user do not count. Before its exec, a child has its parent's memory, which
// counts once.
func (p *account) descendantsPSS() (sum int64) {
	for pid := range p.processes() {
		parent := parentOf(pid)
		if sharesMemory(pid, parent) {
			continue
		}
		for parent > 1 && parent != os.Getpid() {
			parent = parentOf(parent)
		}
		if parent <= 1 {
			continue
		}
		if n, err := measure.PSS(pid); err == nil { // otherwise it has exited
			sum += n
		}
	}
	return sum
}

// parentOf returns 0 for a process that has exited.
func parentOf(pid int) int {
	s, _ := procfs.Lookup(pid)
	return s.PPID
}

// sharesMemory detects a child between clone(CLONE_VM) and execve.
func sharesMemory(a, b int) bool {
	const kcmpVM = 1
	differs, _, err := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return err == 0 && differs == 0
}
