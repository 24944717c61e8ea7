package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/test/internal/measure"
)

const (
	awakeFor     = "500ms" // after the last event the supervisor hibernates: its delayed work is done then
	quietFor     = 200 * time.Millisecond
	probePause   = 200 * time.Millisecond
	probesWanted = 6 // in one count, which is divided by it: the work of neighbours overlaps
	probePod     = "perf-probe"

	supervisorComm = "podrun-superv"
	hibernateAfter = "PODRUN_HIBERNATE_AFTER="
)

// check counts what podrun's commands do, by command and measure, and compares it with a file of
// expected counts: one round is enough, but what has grown is counted again, at most b.rounds times,
// because the load of a machine only adds to a count. With update it counts in all rounds, and writes
// the file.
func (b *bench) check(file string, update bool) error {
	if err := b.user.traceable(); err != nil {
		return err
	}
	want, err := readExpected(file)
	if err != nil && !update {
		return err
	}
	found := counts{}
	var more, less []string
	for round := range b.rounds + 1 {
		into := found
		if round == 0 { // makes what later rounds find
			into = counts{}
		}
		// On a machine with too much load a command may fail: its round is repeated, too.
		if err = b.countOnce(into); err == nil && round > 0 {
			err = b.countProbe(into)
		}
		if more, less = want.judge(host(), found); err == nil && len(more) == 0 && !update {
			break
		}
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "perf-check, round %d of %d: %v\n", round, b.rounds, err)
		case round > 0:
			fmt.Fprintf(os.Stderr, "perf-check, round %d of %d: %d counts have grown\n", round, b.rounds, len(more))
		}
	}
	if err != nil {
		return err
	}
	if update {
		e, left := expect(host(), found)
		for _, text := range left {
			fmt.Println("varies too much, left out:", text)
		}
		return e.write(file)
	}
	if want.host != host() {
		fmt.Printf("only processes, programs and syncs are compared: the file is of %s, this is %s\n", want.host, host())
	}
	if len(less) > 0 {
		fmt.Printf("less than expected: lower the counts with scripts/perf-check -update\n%s\n", strings.Join(less, "\n"))
	}
	if len(more) > 0 {
		return fmt.Errorf("more than expected; if that is intended: scripts/perf-check -update\n%s", strings.Join(more, "\n"))
	}
	return nil
}

// countOnce counts everything but probes once.
func (b *bench) countOnce(found counts) error {
	if err := b.countFaults(found); err != nil {
		return err
	}
	return b.countCommands(found)
}

// awaitHibernation waits until no supervisor is left that was not there before.
func (p *account) awaitHibernation(before map[int]string) error {
	return p.awaitNone(func(pid int, _ string) bool {
		_, old := before[pid]
		s, _ := procfs.Lookup(pid)
		return !old && s.Comm == supervisorComm
	})
}

// traceable returns an error if the setuid programs newuidmap and newgidmap would lose their
// privilege under strace: only root's strace -u keeps it.
func (p *account) traceable() error {
	if !p.switchTo {
		return errors.New("only root can trace setuid programs: start it as root")
	}
	_, err := exec.LookPath("strace")
	return err
}

// watched returns a command whose calls are written to a file, with the paths of descriptors.
func (b *bench) watched(cmd *exec.Cmd, file string) (*exec.Cmd, error) {
	traced, err := b.user.traced(cmd, everyCall, file)
	if err == nil {
		traced.Args = slices.Insert(traced.Args, 1, "-y")
	}
	return traced, err
}

// countCommands counts the commands of a pod's life: what they do, and what the pod's processes do
// meanwhile.
func (b *bench) countCommands(found counts) (err error) {
	s := shapes[0]
	manifest, trace, commandTrace := b.manifest(s.name), filepath.Join(b.work, "trace.pod"), filepath.Join(b.work, "trace.command")
	before := b.user.processes()
	up, err := b.watched(b.ours.up(s.name, manifest), trace)
	if err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return err
	}
	defer waitTracer(up)
	defer func() {
		if err != nil {
			timed(b.ours.down(s.name, manifest))
		}
	}()
	n := 0
	// settled returns the calls of the pod's processes since the last call, the supervisor's hibernation
	// included: whether it is awake decides what the next command does.
	settled := func() ([]string, error) {
		if err := cmp.Or(b.user.awaitHibernation(before), measure.Within(time.Minute, quietFor, quiet(trace))); err != nil {
			return nil, err
		}
		all, err := completed(trace)
		if err != nil {
			return nil, err
		}
		fresh := all[n:]
		n = len(all)
		return fresh, nil
	}
	if err := b.user.atRest(before); err != nil {
		return err
	}
	lines, err := settled()
	if err != nil {
		return err
	}
	found.add("up", count(lines).measures())
	for _, measured := range []command{{"exec", b.ours.exec(s.name, "/bin/true")}, {"ps", b.ours.ps()}, {"down", b.ours.down(s.name, manifest)}} {
		traced, err := b.watched(measured.cmd, commandTrace)
		if err != nil {
			return err
		}
		if _, err := timed(traced); err != nil {
			return err
		}
		if measured.task == "down" {
			if err := b.user.awaitExit(before); err != nil {
				return err
			}
		}
		lines, err1 := completed(commandTrace)
		more, err2 := settled()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		found.add(measured.task, count(append(lines, more...)).measures())
	}
	return nil
}

// countFaults counts the page faults of commands and of the children that they have waited for,
// without a tracer.
func (b *bench) countFaults(found counts) error {
	s := shapes[0]
	manifest, before := b.manifest(s.name), b.user.processes()
	for _, measured := range []command{{"up", b.ours.up(s.name, manifest)}, {"exec", b.ours.exec(s.name, "/bin/true")}, {"ps", b.ours.ps()}, {"down", b.ours.down(s.name, manifest)}} {
		if _, err := timed(measured.cmd); err != nil {
			return err
		}
		if use, ok := measured.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			found.add(measured.task, map[string]float64{"faults": float64(use.Minflt)})
		}
		if measured.task == "up" {
			if err := b.user.atRest(before); err != nil {
				return err
			}
		}
		if err := b.user.awaitHibernation(before); err != nil {
			return err
		}
	}
	return b.user.awaitExit(before)
}

// countProbe counts from the exec of one probe to the exec of a later one. Between probes the supervisor
// stays awake.
func (b *bench) countProbe(found counts) error {
	manifest, trace := b.manifest(probePod), filepath.Join(b.work, "trace.probe")
	text := strings.Replace(header, "NAME", probePod, 1) + containers("main") + "    readinessProbe: {periodSeconds: 1, timeoutSeconds: 30, exec: {command: [/bin/true]}}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(trace); err != nil { // an earlier round's
		return err
	}
	before := b.user.processes()
	cmd := b.ours.up(probePod, manifest)
	cmd.Env = append(cmd.Env, hibernateAfter+"1h")
	up, err := b.watched(cmd, trace)
	if err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return err
	}
	defer waitTracer(up)
	err = measure.Within(time.Minute, probePause, func() error {
		lines, err := completed(trace)
		if err != nil {
			return err
		}
		var places []int
		for i, line := range lines {
			if strings.HasPrefix(line, `execve("/bin/true"`) {
				places = append(places, i)
			}
		}
		const first = 2 // those before are near the start of the pod
		if len(places) <= first+probesWanted {
			return fmt.Errorf("only %d probes ran", len(places))
		}
		values := count(lines[places[first]:places[first+probesWanted]]).measures()
		for name := range values {
			values[name] /= probesWanted
		}
		found.add("probe", values)
		return nil
	})
	_, derr := timed(b.ours.down(probePod, manifest))
	if err := errors.Join(err, derr); err != nil {
		return fmt.Errorf("count the calls of a probe: %w", err)
	}
	return b.user.awaitExit(before)
}
