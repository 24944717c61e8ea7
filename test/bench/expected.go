package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// counts are what commands did in each round, by command and measure.
type counts map[string]map[string][]float64

// add adds the values of a round.
func (c counts) add(command string, values map[string]float64) {
	if c[command] == nil {
		c[command] = map[string][]float64{}
	}
	for measure, value := range values {
		c[command][measure] = append(c[command][measure], value)
	}
}

// callPrefix begins the measure of a single system call. It is no limit; it shows which calls have
// become more.
const callPrefix = "call:"

const (
	tolerance     = 5.0  // percent that a count may grow, if it varies less
	toleranceMost = 25.0 // a count that varies more is left out
)

// exact are measures that depend on podrun alone, neither on the kernel nor on the load: one more is
// an error, on any machine.
var exact = []string{"processes", "execs", "syncs"}

// expected is the content of the file of expected counts.
type expected struct {
	host   string // that counts other than exact ones depend on
	limits []limit
}

// limit is what is expected of one measure of a command.
type limit struct {
	command, measure string
	count            float64 // the least of all rounds
	tolerance        float64 // in percent
}

const hostKey = "host"

// host returns what counts depend on apart from podrun: the kernel, the number of processors, and the
// hierarchies of cgroups.
func host() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel, _, _ := strings.Cut(string(release), "-")
	major, minor, _ := strings.Cut(kernel, ".")
	minor, _, _ = strings.Cut(minor, ".")
	hierarchies, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	return fmt.Sprintf("linux-%s.%s,cpus-%d,cgroup-v1-%d", major, strings.TrimSpace(minor), runtime.NumCPU(), len(hierarchies))
}

// readExpected reads the file. A line that begins with # is a comment.
func readExpected(file string) (e expected, err error) {
	f, err := os.Open(file)
	if err != nil {
		return e, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text := lines.Text()
		if name, ok := strings.CutPrefix(text, hostKey+" "); ok {
			e.host = name
			continue
		}
		if text != "" && text[0] != '#' {
			var l limit
			if _, err := fmt.Sscan(text, &l.command, &l.measure, &l.count, &l.tolerance); err != nil {
				return e, fmt.Errorf("read %s: line %q: %w", file, text, err)
			}
			e.limits = append(e.limits, l)
		}
	}
	return e, lines.Err()
}

// expect makes limits of the values of all rounds. It also returns what varies too much.
func expect(host string, found counts) (e expected, left []string) {
	e.host = host
	for command, by := range found {
		for measure, values := range by {
			least, most := slices.Min(values), slices.Max(values)
			l := limit{command, measure, least, max(tolerance, math.Ceil(150*(most-least)/max(least, 1)))}
			switch {
			case slices.Contains(exact, measure):
				l.tolerance = 0
			case l.tolerance > toleranceMost && !strings.HasPrefix(measure, callPrefix):
				left = append(left, fmt.Sprintf("%s %s: %v to %v", command, measure, least, most))
				continue
			}
			e.limits = append(e.limits, l)
		}
	}
	slices.SortFunc(e.limits, func(a, b limit) int {
		return cmp.Or(cmp.Compare(a.command, b.command), cmp.Compare(a.measure, b.measure))
	})
	slices.Sort(left)
	return e, left
}

func (e expected) write(file string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# command, measure, count, tolerance in percent: written by scripts/perf-check -update\n%s %s\n", hostKey, e.host)
	for _, l := range e.limits {
		fmt.Fprintf(&b, "%s %s %.6g %v\n", l.command, l.measure, l.count, l.tolerance)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// judge compares the least counts of all rounds with the limits. It returns what has grown, and what
// has become less.
func (e expected) judge(host string, found counts) (more, less []string) {
	for _, l := range e.limits {
		strict := slices.Contains(exact, l.measure)
		if strings.HasPrefix(l.measure, callPrefix) || !strict && host != e.host {
			continue
		}
		values := found[l.command][l.measure]
		if len(values) == 0 {
			more = append(more, fmt.Sprintf("%s: %s: was %v, is not measured", l.command, l.measure, l.count))
			continue
		}
		is := slices.Min(values)
		text := fmt.Sprintf("%s: %s: was %v, is %v (tolerance %v %%)", l.command, l.measure, l.count, is, l.tolerance)
		switch allowed := l.count * l.tolerance / 100; {
		case is-l.count > allowed:
			if l.measure != "faults" {
				text += e.grown(l.command, found[l.command])
			}
			more = append(more, text)
		case l.count-is > allowed:
			less = append(less, text)
		}
	}
	return more, less
}

// grown returns the system calls of a command that have become more, the most grown first.
func (e expected) grown(command string, found map[string][]float64) string {
	was := map[string]float64{}
	for _, l := range e.limits {
		if l.command == command {
			was[l.measure] = l.count
		}
	}
	by := func(measure string) float64 { return slices.Min(found[measure]) - was[measure] }
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a, b))
	})
	var texts []string
	for _, measure := range names {
		if name, ok := strings.CutPrefix(measure, callPrefix); ok && by(measure) > 0 && len(texts) < 8 {
			texts = append(texts, fmt.Sprintf("%s %v to %v", name, was[measure], slices.Min(found[measure])))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "; grown: " + strings.Join(texts, ", ")
}
