package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Calls are put together by their process; those that the scheduler causes, and repeated ones, do
// not count.
func TestCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	text := `12 execve("/bin/x", [...], 0x1 /* 6 vars */) = 0
12 execve("/bin/y", [...], 0x1) = -1 ENOENT (No such file or directory)
12 clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD <unfinished ...>
13 openat(AT_FDCWD</>, "a", O_RDONLY) = 3</a(b)>
12 <... clone resumed>) = 14
12 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 15
13 write(3</a(b)>, ""..., 7) = 7
13 write(4<socket:[9]>, ""..., 9) = 9
13 sendmsg(4<socket:[9]>, {}, 0) = -1 EAGAIN (Resource temporarily unavailable)
13 fsync(3</a>) = 0
13 futex(0x1, FUTEX_WAIT) = 0
13 exit_group(0) = ?
13 +++ exited with 0 +++
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := completed(file)
	if err != nil {
		t.Fatal(err)
	}
	m := count(lines).measures()
	for measure, want := range map[string]float64{"calls": 6, "execs": 1, "processes": 1, "syncs": 1, "bytes": 7, "call:write": 2} {
		if m[measure] != want {
			t.Errorf("%s: %v, want %v", measure, m[measure], want)
		}
	}
}

// A count is the least of all rounds. More than its tolerance is an error, with the calls that have
// grown; less is only a reminder. Of processes, programs and syncs a single one more is an error.
func TestJudge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	// faults vary by a tenth, chaos by more than a gate can bear.
	want, left := expect("here", counts{"ps": {
		"calls": {100, 101}, "call:openat": {40, 40}, "execs": {2, 9}, "syncs": {0, 0}, "faults": {110, 100}, "chaos": {10, 90},
	}})
	if len(left) != 1 || !strings.HasPrefix(left[0], "ps chaos") {
		t.Errorf("left out: %q", left)
	}
	if err := want.write(file); err != nil {
		t.Fatal(err)
	}
	read, err := readExpected(file)
	if err != nil || !reflect.DeepEqual(read, want) {
		t.Fatalf("read %v, %v, want %v", read, err, want)
	}
	execs, syncs := "ps: execs: was 2, is 3 (tolerance 0 %)", "ps: syncs: was 0, is 1 (tolerance 0 %)"
	for _, c := range []struct {
		host                        string
		calls, execs, syncs, faults []float64
		more, less                  []string
	}{
		{host: "here", calls: []float64{105}, execs: []float64{2}, syncs: []float64{0}, faults: []float64{115}},
		{host: "here", calls: []float64{200, 100}, execs: []float64{7, 2}, syncs: []float64{5, 0}, faults: []float64{900, 100}},
		{host: "here", calls: []float64{106}, execs: []float64{3}, syncs: []float64{1}, faults: []float64{116}, more: []string{
			"ps: calls: was 100, is 106 (tolerance 5 %); grown: openat 40 to 46", execs + "; grown: openat 40 to 46",
			"ps: faults: was 100, is 116 (tolerance 15 %)", syncs + "; grown: openat 40 to 46",
		}},
		{host: "elsewhere", calls: []float64{300}, execs: []float64{3}, syncs: []float64{1}, faults: []float64{116}, more: []string{
			execs + "; grown: openat 40 to 240", syncs + "; grown: openat 40 to 240",
		}},
		{host: "here", calls: []float64{94}, execs: []float64{1}, syncs: []float64{0}, faults: []float64{100}, less: []string{
			"ps: calls: was 100, is 94 (tolerance 5 %)", "ps: execs: was 2, is 1 (tolerance 0 %)",
		}},
	} {
		more, less := want.judge(c.host, counts{"ps": {
			"calls": c.calls, "call:openat": {slices.Min(c.calls) - 60}, "execs": c.execs, "syncs": c.syncs, "faults": c.faults,
		}})
		if !slices.Equal(more, c.more) || !slices.Equal(less, c.less) {
			t.Errorf("%+v: more %q, less %q", c, more, less)
		}
	}
	if more, _ := want.judge("here", nil); len(more) != 4 {
		t.Errorf("without a measurement: %q", more)
	}
}

// The file in the tree has the exact measures of each command.
func TestExpectedFile(t *testing.T) {
	e, err := readExpected("counts.txt")
	if err != nil || e.host == "" {
		t.Fatalf("host %q, %v", e.host, err)
	}
	found := counts{}
	for _, l := range e.limits {
		found.add(l.command, map[string]float64{l.measure: l.count})
	}
	if more, less := e.judge(e.host, found); len(more)+len(less) > 0 {
		t.Errorf("equal counts: more %q, less %q", more, less)
	}
	for _, command := range []string{"up", "exec", "ps", "down", "probe"} {
		for _, measure := range exact {
			if len(found[command][measure]) == 0 {
				t.Fatalf("%s has no limit of %s", command, measure)
			}
			found[command][measure][0]++
			if more, _ := e.judge("another host", found); len(more) != 1 {
				t.Errorf("one more of %s's %s: %q", command, measure, more)
			}
			found[command][measure][0]--
		}
	}
}
