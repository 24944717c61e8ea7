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
	Memory   *int64         // the working set, in bytes
	Pids     *int64         // processes and threads
	Read     *int64         // bytes from block devices since the group was made
	Written  *int64         // bytes to them
	Pressure Pressure
	Limits   Limits
}

// Pressure is the share of the last 10 seconds during which some process waited for a resource, in
// percent (PSI "some avg10").
type Pressure struct{ CPU, Memory, IO *float64 }

// Limits are those of the group itself, not of its parents; nil: none.
type Limits struct {
	CPU    *int64 // thousandths of a processor
	Memory *int64 // bytes
	Pids   *int64
}

// parse makes a Sample from the texts of a cgroup's files, by name; a file that is missing or
// unreadable is skipped.
//
// The working set is the kubelet's: the charged memory without the file pages that have not been
// used recently (cadvisor: setMemoryStats).
func parse(files map[string]string) (Sample, error) {
	p := parser{files: files}
	var s Sample
	if us := p.keyed("cpu.stat", "usage_usec"); us != nil {
		s.CPU = new(time.Duration(*us) * time.Microsecond)
	}
	if s.Memory = p.number("memory.current"); s.Memory != nil {
		if inactive := p.keyed("memory.stat", "inactive_file"); inactive != nil {
			s.Memory = new(max(*s.Memory-*inactive, 0))
		}
	}
	s.Pids = p.number("pids.current")
	s.Read, s.Written = p.io()
	s.Pressure = Pressure{p.pressure("cpu.pressure"), p.pressure("memory.pressure"), p.pressure("io.pressure")}
	s.Limits = Limits{p.cpuMax(), p.number("memory.max"), p.number("pids.max")}
	return s, p.err
}

// controllerFiles are the files that parse reads.
var controllerFiles = [...]string{
	"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.stat", "memory.max", "memory.pressure",
	"pids.current", "pids.max", "io.stat", "io.pressure",
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

// cpuMax returns the quota of each period, in thousandths of a processor.
func (p *parser) cpuMax() *int64 {
	text, ok := p.files["cpu.max"]
	quota, period, both := strings.Cut(strings.TrimSpace(text), " ")
	if !ok || quota == "max" {
		return nil
	}
	q, of := p.parse("cpu.max", quota), p.parse("cpu.max", period)
	if !both || q == nil || of == nil || *of <= 0 {
		p.fail("cpu.max", text)
		return nil
	}
	return new(int64(float64(*q) * 1000 / float64(*of)))
}

// io sums over the devices; a group without I/O has an empty file.
func (p *parser) io() (read, written *int64) {
	text, ok := p.files["io.stat"]
	if !ok {
		return nil, nil
	}
	sum := map[string]*int64{"rbytes": new(int64), "wbytes": new(int64)}
	for line := range strings.Lines(text) {
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			if total := sum[key]; total != nil {
				if n := p.parse("io.stat", value); n != nil {
					*total += *n
				}
			}
		}
	}
	return sum["rbytes"], sum["wbytes"]
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
