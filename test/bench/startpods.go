package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stamps is how many init containers, whose programs stamp one after the other, a pod has.
const stamps = 6

// earlyRuns is how long an init container runs, so that the next one is made meanwhile: less than
// the time after which a supervisor returns memory to the kernel that it will need again.
const earlyRuns = "0.15"

// startKind is one way in which podrun executes a container's program.
type startKind struct {
	key  string // of report.Starts
	task string // begins the names of its ratios
}

var startKinds = []startKind{
	{"podrun, cold", "start to exec, cold"},
	{"podrun, made early", "start to exec, prepared"},
	{"podrun, made early, from the end", "end of init to next exec, prepared"},
	{"podrun, in a row", "end of init to next exec, not prepared"},
}

// startNote is the page's text about them.
const startNote = `
*start to exec* is the time from the decision to start a container, as the pod's record has it, until its program runs:
*cold* for a container that is not prepared, *prepared* for one that was prepared while an init container ran.
*end of init to next exec* is the time from the end of an init container, whose last action is to print the time, to the
next container's program; it includes the detection and the record of the end. *Not prepared*: each init container ends at
once, so there is no time to prepare the next one. crun: crun's own start, measured in the same way. floor: a C program that
makes the same namespaces and mounts.
`

// startPod is a pod of init containers that stamp.
type startPod struct {
	name string
	run  string // each one's command
	more string // for each one, in YAML
}

// The pods. A container with a volume at /etc is not prepared: it could change what others find
// there.
var (
	sequentialPod = startPod{name: "stamps", run: "[/bin/stamp]"}
	prestartedPod = startPod{name: "early", run: "[/bin/stamp, sh, -c, sleep " + earlyRuns + "; exec stamp]"}
	coldPod       = startPod{name: "cold", run: prestartedPod.run, more: "    volumeMounts: [{name: etc, mountPath: /etc/stamps}]\n"}
)

// text returns the pod's manifest.
func (p startPod) text() string {
	text := strings.Replace(header, "NAME", p.name, 1) + "  volumes: [{name: etc, emptyDir: {}}]\n  initContainers:\n"
	for i := range stamps {
		text += fmt.Sprintf("  - name: %s\n    image: %s\n    imagePullPolicy: Never\n    command: %s\n%s", stampName(i), image, p.run, p.more)
	}
	return text + containers("main")
}

func stampName(i int) string { return fmt.Sprint("s", i) }

// startTimes are the times of one of its containers, by CLOCK_MONOTONIC.
type startTimes struct {
	ordered time.Duration
	ran     []time.Duration // when its programs ran
}

// podrun runs a pod of each kind.
func (s *starters) podrun() (map[string][]time.Duration, error) {
	times := map[string][]time.Duration{}
	add := func(key string, from, to time.Duration) { times[key] = append(times[key], to-from) }
	for _, p := range []startPod{sequentialPod, prestartedPod, coldPod} {
		list, err := s.stamped(p)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", p.name, err)
		}
		for i := 1; i < len(list); i++ {
			before, x := list[i-1].ran, list[i]
			end := before[len(before)-1]
			switch p.name {
			case sequentialPod.name:
				add("podrun, in a row", end, x.ran[0])
			case prestartedPod.name:
				add("podrun, made early", x.ordered, x.ran[0])
				add("podrun, made early, from the end", end, x.ran[0])
			case coldPod.name:
				add("podrun, cold", x.ordered, x.ran[0])
			}
		}
	}
	return times, nil
}

// stamped runs a pod.
func (s *starters) stamped(p startPod) (list []startTimes, err error) {
	file := filepath.Join(s.work, p.name+".yaml")
	if err := os.WriteFile(file, []byte(p.text()), 0o644); err != nil {
		return nil, err
	}
	if _, err := timed(s.ours.up(p.name, file)); err != nil {
		return nil, err
	}
	defer timed(s.ours.down(p.name, file))
	orders, err := s.orders(p.name)
	if err != nil {
		return nil, err
	}
	want := strings.Count(p.run, "stamp")
	for i := range stamps {
		got, err := output(s.ours.run("logs", p.name, "-c", stampName(i)))
		if err != nil {
			return nil, err
		}
		x := startTimes{ordered: orders[stampName(i)]}
		if x.ran, err = stampsIn(got); err != nil || len(x.ran) != want {
			return nil, fmt.Errorf("container %s stamped %q: %w", stampName(i), got, err)
		}
		list = append(list, x)
	}
	return list, nil
}

// orders returns when a pod's containers were to be started, from its supervisor's record.
func (s *starters) orders(name string) (map[string]time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(s.ours.runtime(), "podrun", "pods", "*", name, "state.json"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("find its record: %d files: %w", len(files), err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	suspendedFor, err := suspended()
	if err != nil {
		return nil, err
	}
	return ordersIn(b, suspendedFor)
}

// ordersIn reads a record, whose times include the time that the machine was suspended.
func ordersIn(text []byte, suspendedFor time.Duration) (map[string]time.Duration, error) {
	var record struct {
		Containers map[string]struct{ Issued struct{ Boot time.Duration } }
	}
	d := json.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&struct{}{}) // other parts of the handoff
	if err == nil {
		err = d.Decode(&record)
	}
	if err != nil {
		return nil, fmt.Errorf("read its record: %w", err)
	}
	orders := map[string]time.Duration{}
	for name, c := range record.Containers {
		if c.Issued.Boot == 0 {
			return nil, errors.New("read its record: nothing about the order to start " + name)
		}
		orders[name] = c.Issued.Boot - suspendedFor
	}
	return orders, nil
}

// suspended returns by how much CLOCK_BOOTTIME exceeds CLOCK_MONOTONIC.
func suspended() (time.Duration, error) {
	var boot, mono unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono), unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)); err != nil {
		return 0, err
	}
	if d := time.Duration(boot.Nano() - mono.Nano()); d > time.Millisecond {
		return d, nil
	}
	return 0, nil
}

func stampsIn(text string) (list []time.Duration, err error) {
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("not a time: %q", text)
		}
		list = append(list, time.Duration(n))
	}
	return list, nil
}

func output(cmd *exec.Cmd) (string, error) {
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(b), nil
}

// startRatios adds podrun's starts relative to the others'.
func (r report) startRatios(add func(name string, a, b float64, ours, theirs string)) {
	for _, kind := range startKinds {
		for _, other := range []string{"floor", "crun"} {
			a, b := r.Starts[kind.key], r.Starts[other]
			add(kind.task+", relative to "+other, a.Median, b.Median, a.String()+" ms", other+": "+b.String()+" ms")
		}
	}
}

// startLines returns rows of the table.
func (r report) startLines() (lines []string) {
	for _, kind := range startKinds {
		s, times := r.Starts[kind.key], ""
		if s.Median == 0 { // it was not measured
			continue
		}
		for _, other := range []string{"floor", "crun"} {
			if m := r.Starts[other].Median; m > 0 {
				times += fmt.Sprintf(", %.1f times %s's", s.Median/m, other)
			}
		}
		lines = append(lines, fmt.Sprintf("%s in ms\t%s\t\t%s\t", kind.task, s.String(), strings.TrimPrefix(times, ", ")))
	}
	for _, other := range []string{"floor", "crun"} {
		if s := r.Starts[other]; s.Median > 0 {
			lines = append(lines, fmt.Sprintf("start to exec in ms, %s\t%s\t\t\t", other, s.String()))
		}
	}
	return lines
}
