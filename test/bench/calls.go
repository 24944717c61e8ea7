package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// counted measures pods that are only made and removed: the processor time of all of it, and once
// the system calls, whose number does not depend on the machine's load.
//
// What an engine does in long-lived processes counts too: an exec's calls are those of the command
// and those that the pod's processes make meanwhile.
func (m measured) counted(who *account, sides []engine, work, pods string, rounds int) error {
	for round := range min(rounds, 3) {
		for _, s := range shapes {
			for _, e := range sides {
				took, err := life(who, e, s.name, filepath.Join(pods, s.name+".yaml"))
				if err != nil {
					return fmt.Errorf("count processors' time of %s: %w", e.name(), err)
				}
				m[e.name()].add("up and down, processors, "+s.title, took)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: processors' time, round %d\n", round+1)
	}
	s := shapes[1]
	for _, e := range sides {
		err := m[e.name()].countAll(who, e, work, s.name, s.title, filepath.Join(pods, s.name+".yaml"))
		if err != nil {
			return fmt.Errorf("count system calls of %s: %w", e.name(), err)
		}
	}
	return nil
}

// life returns the processor time of a pod from its up until nothing of it is left.
func life(who *account, e engine, pod, file string) (time.Duration, error) {
	before, was := who.processes(), reaped()
	if _, err := timed(e.up(pod, file)); err != nil {
		return 0, err
	}
	if err := who.atRest(before); err != nil {
		return 0, err
	}
	if _, err := timed(e.down(pod, file)); err != nil {
		return 0, err
	}
	if err := who.awaitGone(before); err != nil {
		return 0, err
	}
	return reaped() - was, nil
}

// everyCall is strace's name for all calls.
const everyCall = "all"

// countAll counts the calls of a pod's life, or nothing where tracing is impossible.
func (f *figures) countAll(who *account, e engine, work, pod, title, file string) (err error) {
	trace := func(what string) string { return filepath.Join(work, "calls."+e.name()+"."+what) }
	before := who.processes()
	up, err := who.traced(e.up(pod, file), everyCall, trace("pod"))
	if up == nil || err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return err
	}
	defer ended(up)
	defer func() {
		if err != nil {
			timed(e.down(pod, file))
		}
	}()
	if err := who.atRest(before); err != nil {
		return err
	}
	ofPod, err := countCalls(trace("pod"))
	if err != nil {
		return err
	}
	f.calls["up, "+title] = ofPod
	for _, one := range []struct {
		task string
		cmd  *exec.Cmd
	}{{"exec true", e.exec(pod, "/bin/true")}, {"logs", e.logs(pod)}, {"ps, 1 pod", e.ps()}, {"down, " + title, e.down(pod, file)}} {
		own := trace("command")
		traced, err := who.traced(one.cmd, everyCall, own)
		if err != nil {
			return err
		}
		if _, err := timed(traced); err != nil {
			return err
		}
		n, err1 := countCalls(own)
		now, err2 := countCalls(trace("pod"))
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		f.calls[one.task] = n + now - ofPod
		ofPod = now
	}
	return who.awaitGone(before)
}
