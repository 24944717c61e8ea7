package main

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// idleDelay is how long a pod must do nothing to count as idle.
const idleDelay = 3 * time.Second

// outputCommand writes 100 MB in lines of 100 bytes to a container's output; it takes as long
// as the engine takes to log them.
const outputCommand = "yes 123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 | head -c 100000000 >/proc/1/fd/1"

// figures are those of one engine: a task's times in the order they were taken, the footprints of
// each shape, and the system calls of a task.
type figures struct {
	times      map[string][]time.Duration
	footprints map[string]footprint
	calls      map[string]int
	idled      time.Duration // time of starts in which the peer did nothing: see idlePatience
}

// idlePatience is how long podman waits for the exit of an init container that has exited, when the
// process that should report the exit does not (libpod, "Exceeded conmon timeout"). On some
// machines it never does. This wait is not a measure of podman's speed.
const idlePatience = 20 * time.Second

// withoutIdle returns a start's time without that wait.
func (f *figures) withoutIdle(took time.Duration) time.Duration {
	idled := took.Truncate(idlePatience)
	f.idled += idled
	return took - idled
}

type measured map[string]*figures // by engine

// measure does everything once per round, the engines taking turns, so that other load on the
// machine affects both.
func measure(who *account, sides []engine, pods string, rounds int) (measured, error) {
	m := measured{}
	for _, e := range sides {
		m[e.name()] = &figures{times: map[string][]time.Duration{}, footprints: map[string]footprint{}, calls: map[string]int{}}
	}
	for round := range rounds + 1 {
		for _, s := range shapes {
			for _, e := range sides {
				if err := m[e.name()].runOnce(who, e, s.name, s.title, filepath.Join(pods, s.name+".yaml"), round, rounds); err != nil {
					return nil, err
				}
			}
		}
		fmt.Fprintf(os.Stderr, "bench: round %d of %d\n", round, rounds)
	}
	return m, nil
}

// runOnce measures one pod in one round. Round 0 only warms up; in the last one it measures the
// engine's memory, at once and after a while.
func (f *figures) runOnce(who *account, e engine, pod, title, file string, round, last int) error {
	before := who.processes()
	up, err := timed(e.up(pod, file))
	if err != nil {
		return err
	}
	if _, peer := e.(*podman); peer {
		up = f.withoutIdle(up)
	}
	if err := who.atRest(before); err != nil {
		return err
	}
	if round == last {
		f.footprints[title+", just started"] = who.footprint(before)
		time.Sleep(idleDelay)
		f.footprints[title+", idle"] = who.footprint(before)
	}
	command := e.exec(pod, "/bin/true")
	exec, err := timed(command)
	if err != nil {
		return err
	}
	execCPU := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	var logs, ps, help time.Duration
	for _, quick := range []struct {
		took *time.Duration
		cmd  *osexec.Cmd
	}{{&logs, e.logs(pod)}, {&ps, e.ps()}, {&help, e.help()}} {
		if *quick.took, err = timed(quick.cmd); err != nil {
			return err
		}
	}
	output, err := timed(e.exec(pod, "/bin/sh", "-c", outputCommand))
	if err != nil {
		return err
	}
	version, err := timed(e.version())
	if err != nil {
		return err
	}
	down, err := timed(e.down(pod, file))
	if err != nil {
		return err
	}
	if err := who.awaitGone(before); err != nil || round == 0 {
		return err
	}
	f.add("up, "+title, up)
	f.add("down, "+title, down)
	f.add("exec true", exec)
	f.add("exec true, processor of the command", execCPU)
	f.add("logs", logs)
	f.add("ps, 1 pod", ps)
	f.add("--help", help)
	f.add("100 MB of output", output)
	f.add("--version", version)
	return nil
}

// atRest waits until the containers only wait (before that they cannot stop at once), and the
// engine's temporary processes have exited.
func (p *account) atRest(before map[int]string) error {
	var last []int
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		var now []int
		shells, sleepers := 0, 0
		for pid, words := range p.processes() {
			if _, old := before[pid]; old {
				continue
			}
			now = append(now, pid)
			switch words = strings.TrimSpace(words); {
			case words == "sleep "+payload:
				sleepers++
			case strings.Contains(words, payload):
				shells++
			}
		}
		slices.Sort(now)
		if shells > 0 && shells == sleepers && slices.Equal(now, last) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a minute after the pod was started %d of its %d containers are ready", sleepers, shells)
		}
		last = now
	}
}

// awaitGone waits until all processes that started after before have exited: background work of one
// engine must not slow down the other.
func (p *account) awaitGone(before map[int]string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for pid, words := range p.processes() {
			if _, old := before[pid]; !old && !hasEnded(pid) {
				left = append(left, words)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a minute after the pod was removed these are left: %q", left)
		}
	}
}

// hasEnded reports whether a process only waits to be reaped, perhaps by this program.
func hasEnded(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest == "" || rest[0] == 'Z'
}

func (f *figures) add(task string, d time.Duration) { f.times[task] = append(f.times[task], d) }
