package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// figures of one engine: a task's times in the order they were taken, and the
// footprint of each shape, from the last round.
type figures struct {
	times map[string][]time.Duration
	feet  map[string]footprint
}

type measured map[string]*figures // by engine

// measure does everything once per round, the engines taking turns, so that what
// else the machine does meets both.
func measure(who *person, sides []engine, pods string, rounds int) (measured, error) {
	m := measured{}
	for _, e := range sides {
		m[e.name()] = &figures{map[string][]time.Duration{}, map[string]footprint{}}
	}
	for round := range rounds + 1 { // the first only warms up
		for _, s := range shapes {
			for _, e := range sides {
				if err := m[e.name()].once(who, e, s.name, s.title, filepath.Join(pods, s.name+".yaml"), round > 0); err != nil {
					return nil, err
				}
			}
		}
		fmt.Fprintf(os.Stderr, "bench: round %d of %d\n", round, rounds)
	}
	return m, nil
}

func (f *figures) once(who *person, e engine, pod, title, file string, count bool) error {
	before := who.processes()
	up, err := timed(e.up(pod, file))
	if err != nil {
		return err
	}
	exec, err := timed(e.exec(pod, "/bin/true"))
	if err != nil {
		return err
	}
	foot := who.footprint(before)
	down, err := timed(e.down(pod, file))
	if err != nil {
		return err
	}
	if err := who.settled(before); err != nil || !count {
		return err
	}
	f.add("up, "+title, up)
	f.add("down, "+title, down)
	f.add("exec true", exec)
	f.feet[title] = foot
	return nil
}

// settled waits until nothing is left of what came after before: what one engine
// ends in the background must not slow the other.
func (p *person) settled(before map[int]string) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for pid, words := range p.processes() {
			if _, old := before[pid]; !old {
				left = append(left, words)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("20 s after the pod was removed these are left: %q", left)
		}
	}
}

func (f *figures) add(task string, d time.Duration) { f.times[task] = append(f.times[task], d) }
