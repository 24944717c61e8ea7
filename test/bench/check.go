package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

const (
	quietFor     = time.Second // longer than the supervisor delays its work after an exec or a start
	probePause   = 200 * time.Millisecond
	probesWanted = 5 // the counts between two of them are a value each
	probePod     = "perf-probe"
)

// check counts what podrun's commands do in some rounds, by command and measure, and compares it
// with a file of expected counts, or with update writes that file.
func (b *bench) check(file string, update bool) error {
	found := map[string]map[string][]float64{}
	if err := b.user.traceable(); err != nil {
		return err
	}
	// Round 0 makes what later ones find.
	if err := measure.Rounds("perf-check", 0, b.rounds, func(round int) error {
		into := found
		if round == 0 {
			into = map[string]map[string][]float64{}
		}
		if err := b.countFaults(into); err != nil {
			return err
		}
		return b.countCommands(into)
	}); err != nil {
		return err
	}
	if err := b.countProbe(found); err != nil {
		return fmt.Errorf("count the calls of a probe: %w", err)
	}
	if update {
		list, left := expect(found)
		for _, text := range left {
			fmt.Println("varies too much, left out:", text)
		}
		return writeExpected(file, list)
	}
	want, err := readExpected(file)
	if err != nil {
		return err
	}
	more, less := judge(want, found)
	if len(less) > 0 {
		fmt.Printf("less than expected: lower the counts with scripts/perf-check -update\n%s\n", strings.Join(less, "\n"))
	}
	if len(more) > 0 {
		return fmt.Errorf("more than expected; if that is intended: scripts/perf-check -update\n%s", strings.Join(more, "\n"))
	}
	return nil
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
func (b *bench) countCommands(found map[string]map[string][]float64) (err error) {
	s := shapes[0]
	manifest, trace, own := b.manifest(s.name), filepath.Join(b.work, "trace.pod"), filepath.Join(b.work, "trace.command")
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
	seen := 0
	// settled returns the calls of the pod's processes since the last call.
	settled := func() ([]string, error) {
		if err := measure.Within(time.Minute, quietFor, quiet(trace)); err != nil {
			return nil, err
		}
		all, err := completed(trace)
		if err != nil {
			return nil, err
		}
		fresh := all[seen:]
		seen = len(all)
		return fresh, nil
	}
	if err := b.user.atRest(before); err != nil {
		return err
	}
	lines, err := settled()
	if err != nil {
		return err
	}
	note(found, "up", count(lines).measures())
	for _, one := range []command{{"exec", b.ours.exec(s.name, "/bin/true")}, {"ps", b.ours.ps()}, {"down", b.ours.down(s.name, manifest)}} {
		traced, err := b.watched(one.cmd, own)
		if err != nil {
			return err
		}
		if _, err := timed(traced); err != nil {
			return err
		}
		if one.task == "down" {
			if err := b.user.awaitExit(before); err != nil {
				return err
			}
		}
		lines, err1 := completed(own)
		more, err2 := settled()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		note(found, one.task, count(append(lines, more...)).measures())
	}
	return nil
}

// countFaults counts the page faults of commands and of the children that they have waited for,
// without a tracer.
func (b *bench) countFaults(found map[string]map[string][]float64) error {
	s := shapes[0]
	manifest, before := b.manifest(s.name), b.user.processes()
	for _, one := range []command{{"up", b.ours.up(s.name, manifest)}, {"exec", b.ours.exec(s.name, "/bin/true")}, {"ps", b.ours.ps()}, {"down", b.ours.down(s.name, manifest)}} {
		if _, err := timed(one.cmd); err != nil {
			return err
		}
		if use, ok := one.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			note(found, one.task, map[string]float64{"faults": float64(use.Minflt)})
		}
		if one.task == "up" {
			if err := b.user.atRest(before); err != nil {
				return err
			}
		}
	}
	return b.user.awaitExit(before)
}

// countProbe counts from the exec of one probe to that of the next.
func (b *bench) countProbe(found map[string]map[string][]float64) error {
	manifest, trace := b.manifest(probePod), filepath.Join(b.work, "trace.probe")
	text := strings.Replace(header, "NAME", probePod, 1) + containers("main") + "    readinessProbe: {periodSeconds: 1, timeoutSeconds: 30, exec: {command: [/bin/true]}}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
		return err
	}
	up, err := b.watched(b.ours.up(probePod, manifest), trace)
	if err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return err
	}
	defer waitTracer(up)
	defer timed(b.ours.down(probePod, manifest))
	var lines []string
	var at []int
	// The first two probes are near the start of the pod.
	if err := measure.Within(time.Minute, probePause, func() (err error) {
		if lines, err = completed(trace); err != nil {
			return err
		}
		at = at[:0]
		for i, line := range lines {
			if strings.HasPrefix(line, `execve("/bin/true"`) {
				at = append(at, i)
			}
		}
		if len(at) < probesWanted+3 {
			return fmt.Errorf("only %d probes ran", len(at))
		}
		return nil
	}); err != nil {
		return err
	}
	for i := 2; i < len(at)-1; i++ {
		note(found, "probe", count(lines[at[i]:at[i+1]]).measures())
	}
	return nil
}

// note adds values of a round.
func note(found map[string]map[string][]float64, command string, values map[string]float64) {
	if found[command] == nil {
		found[command] = map[string][]float64{}
	}
	for name := range maps.Keys(values) {
		found[command][name] = append(found[command][name], values[name])
	}
}
