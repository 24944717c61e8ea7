// Package stats reads the resource usage of a cgroup, or of processes without a cgroup, from files
// of the kernel alone. It communicates with no process and changes nothing.
//
// It is a package of its own because the CLI needs it without the library that package cgroups
// imports.
package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sample is the resource usage of a group of processes at one moment. Values that a controller or
// the kernel does not provide are nil.
type Sample struct {
	At       time.Time      // monotonic clock
	CPU      *time.Duration // time on processors since the group was made
	User     *time.Duration // of it, in user mode
	System   *time.Duration // of it, in the kernel
	Throttle Throttle
	Memory   *int64 // the working set, in bytes
	Charged  *int64 // all charged memory
	Peak     *int64 // the most that was charged since the group was made
	Kernel   *int64 // the kernel's own
	RSS      *int64 // anonymous memory
	Cache    *int64 // file pages
	Mapped   *int64 // of them, mapped
	Active   *int64 // of them, used recently
	Inactive *int64 // of them, not used recently
	Faults   Faults
	Swap     *int64
	OOMKills *int64 // processes killed since the group was made, because its memory was exhausted
	Pids     *int64 // processes and threads
	Read     *int64 // bytes from block devices since the group was made
	Written  *int64 // bytes to them
	Reads    *int64 // reads of block devices since the group was made
	Writes   *int64
	Pressure Pressure
	Limits   Limits
}

// Faults counts page faults since the group was made.
type Faults struct {
	All, Major *int64 // Major: with I/O
}

// Throttle counts the periods of a limit of CPU since the group was made, and those in which it stopped the
// processes.
type Throttle struct {
	Periods, Throttled *int64
	Time               *time.Duration // sum over the processors
}

// Pressure is the share of the last 10 seconds during which some process waited for a resource, in
// percent (PSI "some avg10").
type Pressure struct{ CPU, Memory, IO *float64 }

// Limits are set for the group itself, not for its parents; nil: none.
type Limits struct {
	CPU       *int64 // thousandths of a processor
	CPUQuota  *int64 // the same, in microseconds of each period
	CPUPeriod *int64 // microseconds; there is one without a quota, too
	Memory    *int64 // bytes
	Pids      *int64
}

// parse makes a Sample from the texts of a cgroup's files, by name; a file that is missing or
// unreadable is skipped.
//
// The working set is the kubelet's: the charged memory without the file pages that have not been
// used recently (cadvisor: setMemoryStats).
func parse(files map[string]string) (Sample, error) {
	p := parser{files: files}
	var s Sample
	s.CPU, s.User, s.System = p.microseconds("usage_usec"), p.microseconds("user_usec"), p.microseconds("system_usec")
	s.Throttle = Throttle{p.keyed("cpu.stat", "nr_periods"), p.keyed("cpu.stat", "nr_throttled"), p.microseconds("throttled_usec")}
	s.Charged, s.Peak = p.number("memory.current"), p.number("memory.peak")
	s.Active, s.Inactive = p.keyed("memory.stat", "active_file"), p.keyed("memory.stat", "inactive_file")
	if s.Memory = s.Charged; s.Memory != nil && s.Inactive != nil {
		s.Memory = new(max(*s.Memory-*s.Inactive, 0))
	}
	s.Kernel = p.keyed("memory.stat", "kernel")
	s.Faults = Faults{p.keyed("memory.stat", "pgfault"), p.keyed("memory.stat", "pgmajfault")}
	s.RSS, s.Cache, s.Mapped = p.keyed("memory.stat", "anon"), p.keyed("memory.stat", "file"), p.keyed("memory.stat", "file_mapped")
	s.Swap, s.OOMKills = p.number("memory.swap.current"), p.keyed("memory.events", "oom_kill")
	s.Pids = p.number("pids.current")
	s.Read, s.Written, s.Reads, s.Writes = p.io("rbytes"), p.io("wbytes"), p.io("rios"), p.io("wios")
	s.Pressure = Pressure{p.pressure("cpu.pressure"), p.pressure("memory.pressure"), p.pressure("io.pressure")}
	s.Limits = Limits{Memory: p.number("memory.max"), Pids: p.number("pids.max")}
	p.cpuMax(&s.Limits)
	return s, p.err
}

// controllerFiles are the files that parse reads.
var controllerFiles = [...]string{
	"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.stat", "memory.max", "memory.pressure",
	"memory.events", "memory.peak", "memory.swap.current", "pids.current", "pids.max", "io.stat", "io.pressure",
}

// parser keeps the first error.
type parser struct {
	files map[string]string
	err   error
}

func (p *parser) parse(file, text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.fail(file, text)
		return nil
	}
	return &n
}

func (p *parser) fail(file, text string) {
	if p.err == nil {
		p.err = fmt.Errorf("read %s: %.60q is not what the kernel writes", file, text)
	}
}

// number reads a file with one number; "max" gives nil.
func (p *parser) number(file string) *int64 {
	text, ok := p.files[file]
	if text = strings.TrimSpace(text); !ok || text == "max" {
		return nil
	}
	return p.parse(file, text)
}

// keyed reads one number of a file with a "key number" in each line.
func (p *parser) keyed(file, key string) *int64 {
	for line := range strings.Lines(p.files[file]) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return p.parse(file, strings.TrimSpace(value))
		}
	}
	return nil
}

// microseconds reads a time of cpu.stat.
func (p *parser) microseconds(key string) *time.Duration {
	us := p.keyed("cpu.stat", key)
	if us == nil {
		return nil
	}
	return new(time.Duration(*us) * time.Microsecond)
}

// cpuMax reads the quota of each period.
func (p *parser) cpuMax(l *Limits) {
	text, ok := p.files["cpu.max"]
	if !ok {
		return
	}
	quota, period, both := strings.Cut(strings.TrimSpace(text), " ")
	of := p.parse("cpu.max", period)
	if !both || of == nil || *of <= 0 {
		p.fail("cpu.max", text)
		return
	}
	l.CPUPeriod = of
	if quota == "max" {
		return
	}
	if l.CPUQuota = p.parse("cpu.max", quota); l.CPUQuota != nil {
		l.CPU = new(int64(float64(*l.CPUQuota) * 1000 / float64(*of)))
	}
}

// io sums a number over the devices; a group without I/O has an empty file.
func (p *parser) io(key string) *int64 {
	text, ok := p.files["io.stat"]
	if !ok {
		return nil
	}
	sum := int64(0)
	for word := range strings.FieldsSeq(text) {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			if n := p.parse("io.stat", value); n != nil {
				sum += *n
			}
		}
	}
	return &sum
}

func (p *parser) pressure(file string) *float64 {
	for line := range strings.Lines(p.files[file]) {
		rest, ok := strings.CutPrefix(line, "some ")
		if !ok {
			continue
		}
		for _, word := range strings.Fields(rest) {
			if value, ok := strings.CutPrefix(word, "avg10="); ok {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					p.fail(file, value)
					return nil
				}
				return &n
			}
		}
	}
	return nil
}

// CPUBetween returns the mean number of processors, in thousandths, that were in use between two
// samples of a group; nil if it is unknown. A counter that has decreased belongs to a new group of
// the same name.
func CPUBetween(before, after Sample) *int64 {
	if after.CPU == nil {
		return nil
	}
	used, took := *after.CPU, after.At.Sub(before.At)
	if before.CPU == nil || took <= 0 {
		return nil
	}
	if used >= *before.CPU {
		used -= *before.CPU
	}
	// Rounded up, as a quantity in "m" is: a group that has used any time is not idle.
	return new(int64((float64(used)*1000 + float64(took) - 1) / float64(took)))
}
