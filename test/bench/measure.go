package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/test/internal/measure"
)

// idleDelay is how long a pod must do nothing to count as idle.
const idleDelay = 3 * time.Second

// outputCommand writes 100 MB in lines of 100 bytes to a container's output; it takes as long
// as the engine takes to log them.
const outputCommand = "yes 123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 | head -c 100000000 >/proc/1/fd/1"

// figures are of one engine: a task's times in the order they were taken, the footprints of
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

// measurePods measures single pods: every command, then pods at rest and their whole lives, system calls, and probes.
func (b *bench) measurePods(r *report) error {
	m := measured{}
	for _, e := range b.engines() {
		m[e.name()] = &figures{times: map[string][]time.Duration{}, footprints: map[string]footprint{}, calls: map[string]int{}}
	}
	// The engines take turns, so that other load on the machine affects both.
	if err := measure.Rounds("bench", 0, b.rounds, func(round int) error {
		for _, s := range shapes {
			for _, e := range b.engines() {
				if err := b.runOnce(m[e.name()], e, s, round); err != nil {
					return err
				}
			}
		}
		for _, e := range b.engines() {
			if err := b.runMany(m[e.name()], e, round); err != nil {
				return err
			}
			if err := b.runOutput(m[e.name()], e, round); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := b.measureSync(m[b.ours.name()]); err != nil {
		return err
	}
	if err := adoptOrphans(); err != nil {
		return err
	}
	err := b.measureLives(m)
	if err == nil {
		err = b.count(m)
	}
	if err != nil {
		return err
	}
	r.add(m)
	r.Costs, err = b.measureCosts()
	return err
}

// runOnce measures one pod in one round. Round 0 only warms up; in the last one it measures the
// engine's memory, at once and after a while.
func (b *bench) runOnce(f *figures, e engine, s shape, round int) error {
	before, file := b.user.processes(), b.manifest(s.name)
	up, err := timed(e.up(s.name, file))
	if err != nil {
		return err
	}
	if _, peer := e.(*podman); peer {
		up = f.withoutIdle(up)
	}
	if err := b.user.atRest(before); err != nil {
		return err
	}
	if round == b.rounds {
		f.footprints[s.title+", just started"] = b.user.footprint(before)
		time.Sleep(idleDelay)
		f.footprints[s.title+", idle"] = b.user.footprint(before)
	}
	times := map[string]time.Duration{"up, " + s.title: up}
	for _, command := range commands(e, s, file) {
		if times[command.task], err = timed(command.cmd); err != nil {
			return err
		}
		if command.task == execTask {
			times[execTask+", processor of the command"] = command.cmd.ProcessState.UserTime() + command.cmd.ProcessState.SystemTime()
		}
	}
	if err := b.user.awaitExit(before); err != nil || round == 0 {
		return err
	}
	for task, took := range times {
		f.add(task, took)
	}
	return nil
}

// oneMoreTask is by how much a container more makes up longer.
const oneMoreTask = "up, one container more"

// runMany measures the price of a container: up of a pod with several of them is compared with up of one in the same round.
func (b *bench) runMany(f *figures, e engine, round int) error {
	s := manyContainers
	before, file := b.user.processes(), b.manifest(s.name)
	up, err := timed(e.up(s.name, file))
	if err == nil {
		err = b.user.atRest(before)
	}
	_, derr := timed(e.down(s.name, file))
	if err := errors.Join(err, derr, b.user.awaitExit(before)); err != nil || round == 0 {
		return err
	}
	f.add(oneMoreTask, (up-f.times["up, "+shapes[0].title][round-1])/oneMore)
	return nil
}

// runOutput measures the output of a pod. It has a pod of its own: podman's down waits until conmon has synced what the pod has
// just written, so output before it would be a part of the time of down.
func (b *bench) runOutput(f *figures, e engine, round int) error {
	s := shapes[0]
	before, file := b.user.processes(), b.manifest(s.name)
	if _, err := timed(e.up(s.name, file)); err != nil {
		return err
	}
	if err := b.user.atRest(before); err != nil {
		return err
	}
	took, err := timed(e.exec(s.name, "/bin/sh", "-c", outputCommand))
	stream := piped(e.exec(s.name, "/bin/sh", "-c", streamCommand))
	streamed, serr := timed(stream)
	_, derr := timed(e.down(s.name, file))
	if err := errors.Join(err, serr, derr, b.user.awaitExit(before)); err != nil || round == 0 {
		return err
	}
	f.add("100 MB of output", took)
	f.add(streamTask, streamed)
	f.add(streamTask+", processor of the command", stream.ProcessState.UserTime()+stream.ProcessState.SystemTime())
	return nil
}

// streamTask is the name of the measurement of streamCommand, whose output another process reads.
const (
	streamTask    = "200 MB through exec"
	streamCommand = "head -c 200000000 /dev/zero"
)

// piped returns a command whose output goes through a pipe of the shell.
func piped(cmd *exec.Cmd) *exec.Cmd {
	words := append([]string{"sh", "-c", `"$@" | cat >/dev/null`, "sh"}, cmd.Args...)
	cmd.Path, cmd.Args = "/bin/sh", words
	return cmd
}

// execTask is the name of the measurement of a command that does nothing.
const execTask = "exec true"

// command is a command to measure, and the name of the measurement.
type command struct {
	task string
	cmd  *exec.Cmd
}

// commands returns the commands to measure while the pod runs; the last one removes it.
func commands(e engine, s shape, file string) []command {
	return []command{
		{execTask, e.exec(s.name, "/bin/true")},
		{"logs", e.logs(s.name)},
		{psTask(1), e.ps()},
		{"--help", e.help()},
		{"--version", e.version()},
		{"down, " + s.title, e.down(s.name, file)},
	}
}

// atRest waits until the containers only wait (before that they cannot stop at once), and the
// engine's temporary processes have exited.
func (p *account) atRest(before map[int]string) error {
	var last []int
	return measure.Within(time.Minute, 200*time.Millisecond, func() error {
		var now []int
		shells, sleepers := 0, 0
		for pid, line := range p.processes() {
			if _, old := before[pid]; old {
				continue
			}
			now = append(now, pid)
			switch line = strings.TrimSpace(line); {
			case line == "sleep "+payload:
				sleepers++
			case strings.Contains(line, payload):
				shells++
			}
		}
		slices.Sort(now)
		stable := slices.Equal(now, last)
		last = now
		if shells > 0 && shells == sleepers && stable {
			return nil
		}
		return fmt.Errorf("a minute after the pod was started %d of its %d containers are ready", sleepers, shells)
	})
}

// awaitExit waits until all processes that started after before have exited: background work of one
// engine must not slow down the other.
func (p *account) awaitExit(before map[int]string) error {
	return p.awaitNone(func(pid int, _ string) bool { _, old := before[pid]; return !old })
}

// awaitNone waits until no process of the user is counted.
func (p *account) awaitNone(counts func(pid int, line string) bool) error {
	return measure.Within(time.Minute, 10*time.Millisecond, func() error {
		var left []string
		for pid, line := range p.processes() {
			if counts(pid, line) && !hasExited(pid) {
				left = append(left, line)
			}
		}
		if len(left) == 0 {
			return nil
		}
		return fmt.Errorf("a minute after the pod was removed these processes are left: %q", left)
	})
}

// hasExited reports whether a process only waits to be reaped, perhaps by this program.
func hasExited(pid int) bool {
	s, ok := procfs.Lookup(pid)
	return !ok || s.State == 'Z'
}

func (f *figures) add(task string, d time.Duration) { f.times[task] = append(f.times[task], d) }
