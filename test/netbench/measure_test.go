package main

import (
	"os"
	"testing"
	"time"
)

// A process that has started meanwhile counts from its start, one that has exited does not count.
func TestUsed(t *testing.T) {
	before := map[int]time.Duration{1: 5, 2: 7}
	if got := used(before, map[int]time.Duration{1: 8, 3: 10}); got != 13 {
		t.Errorf("%d, want 13", got)
	}
}

// The clock of a process is found by its pid and does not go back.
func TestProcessorTimes(t *testing.T) {
	const noPid = 1 << 22 // the kernel gives smaller ones
	pid := os.Getpid()
	first := processorTimes([]int{pid, noPid})
	second := processorTimes([]int{pid})
	if len(first) != 1 || first[pid] <= 0 || second[pid] < first[pid] {
		t.Errorf("%v, then %v", first, second)
	}
}
