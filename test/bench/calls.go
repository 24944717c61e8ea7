package main

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// count counts the system calls of pods that are only made and removed, once: their number does not depend on the
// machine's load.
//
// What an engine does in long-lived processes counts too: an exec's calls are the calls of the command
// and what the pod's processes call meanwhile.
func (b *bench) count(m measured) error {
	for _, e := range b.engines() {
		if err := b.countCalls(m[e.name()], e, shapes[1]); err != nil {
			return fmt.Errorf("count system calls of %s: %w", e.name(), err)
		}
	}
	return nil
}

// everyCall is strace's name for all calls.
const everyCall = "all"

// countCalls counts the calls of a pod's life, or nothing where tracing is impossible.
func (b *bench) countCalls(f *figures, e engine, s shape) (err error) {
	file := b.manifest(s.name)
	trace := func(what string) string { return filepath.Join(b.work, "calls."+e.name()+"."+what) }
	before := b.user.processes()
	up, err := b.user.traced(e.up(s.name, file), everyCall, trace("pod"))
	if up == nil || err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return err
	}
	defer waitTracer(up)
	defer func() {
		if err != nil {
			timed(e.down(s.name, file))
		}
	}()
	if err := b.user.atRest(before); err != nil {
		return err
	}
	ofPod, err := callsIn(trace("pod"))
	if err != nil {
		return err
	}
	f.calls["up, "+s.title] = ofPod
	for _, measured := range []command{{execTask, e.exec(s.name, "/bin/true")}, {"logs", e.logs(s.name)}, {psTask(1), e.ps()}, {"down, " + s.title, e.down(s.name, file)}} {
		command := trace("command")
		traced, err := b.user.traced(measured.cmd, everyCall, command)
		if err != nil {
			return err
		}
		if _, err := timed(traced); err != nil {
			return err
		}
		n, err1 := callsIn(command)
		now, err2 := callsIn(trace("pod"))
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		f.calls[measured.task] = n + now - ofPod
		ofPod = now
	}
	return b.user.awaitExit(before)
}
