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
)

// footprint is what an engine keeps for one running pod, without the pod's own
// processes.
type footprint struct {
	Processes  int      `json:"processes"`
	PSS        int64    `json:"pssKiB"`
	Names      []string `json:"names"`
	Unreadable int      `json:"unreadable"` // processes whose memory this user may not read
}

// processes lists the person's processes by pid.
func (p *person) processes() map[int]string {
	found := map[int]string{}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		uid, ok := realUID(dir)
		if ok && p.owns(uid) {
			words, _ := os.ReadFile(dir + "/cmdline")
			found[pid] = strings.Join(strings.Split(string(words), "\x00"), " ")
		}
	}
	return found
}

func realUID(dir string) (uint64, bool) {
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0, false // it has ended
	}
	_, rest, ok := strings.Cut(string(status), "\nUid:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	uid, err := strconv.ParseUint(fields[0], 10, 32)
	return uid, err == nil
}

// footprint measures what is there now and was not before.
func (p *person) footprint(before map[int]string) footprint {
	var f footprint
	now := p.processes()
	for _, pid := range slices.Sorted(maps.Keys(now)) {
		if _, old := before[pid]; old || strings.Contains(now[pid], payload) || pid == os.Getpid() {
			continue
		}
		comm, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		pss, err2 := pss(pid)
		switch {
		case errors.Is(err2, fs.ErrPermission):
			f.Unreadable++
		case err1 != nil || err2 != nil:
			continue // it has ended
		}
		f.Processes++
		f.PSS += pss
		f.Names = append(f.Names, strings.TrimSpace(string(comm)))
	}
	slices.Sort(f.Names)
	return f
}

// pss is a process's proportional share of memory, in KiB.
func pss(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "Pss:" {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("process %d has no Pss", pid)
}
