package main

import (
	"os"
	"path/filepath"
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

// More than the tolerance, and more than the slack, is an error with the calls that have grown;
// less is only a reminder.
func TestJudge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	// middle 100 and 40; faults vary by a tenth, chaos by more than a gate can bear.
	list, left := expect(map[string]map[string][]float64{"ps": {
		"calls": {100, 100, 101}, "call:openat": {40, 40}, "execs": {2, 2}, "faults": {95, 100, 105}, "chaos": {10, 90, 100},
	}})
	if list, left := expect(map[string]map[string][]float64{"down": {"calls": {9}}}); len(list) != 0 || len(left) != 1 {
		t.Errorf("an unstable count: %v, left out %q", list, left)
	}
	if len(left) != 1 || !strings.HasPrefix(left[0], "ps chaos") {
		t.Errorf("left out: %q", left)
	}
	if err := writeExpected(file, list); err != nil {
		t.Fatal(err)
	}
	want, err := readExpected(file)
	if err != nil || !slices.Equal(want, list) {
		t.Fatalf("read %v, %v, want %v", want, err, list)
	}
	for _, c := range []struct {
		calls, execs, faults float64
		more, less           []string
	}{
		{calls: 105, execs: 5, faults: 115},
		{calls: 106, execs: 6, faults: 116, more: []string{
			"ps: calls: was 100, is 106 (tolerance 5 %); grown: openat 40 to 46", "ps: execs: was 2, is 6 (tolerance 5 %)", "ps: faults: was 100, is 116 (tolerance 15 %)",
		}},
		{calls: 94, execs: 0, faults: 100, less: []string{"ps: calls: was 100, is 94 (tolerance 5 %)"}},
	} {
		more, less := judge(want, map[string]map[string][]float64{"ps": {
			"calls": {c.calls}, "call:openat": {c.calls - 60}, "execs": {c.execs}, "faults": {c.faults},
		}})
		if !slices.Equal(more, c.more) || !slices.Equal(less, c.less) {
			t.Errorf("%+v: more %q, less %q", c, more, less)
		}
	}
	if more, _ := judge(want, nil); len(more) != 3 {
		t.Errorf("without a measurement: %q", more)
	}
}
