package host

import "testing"

// TestProcesses: this process is one of them.
func TestProcesses(t *testing.T) {
	limit, running, err := Processes()
	if err != nil || running < 1 || limit < running {
		t.Errorf("%d of %d, %v", running, limit, err)
	}
	for text, want := range map[string]int64{"0.1 0.2 0.3 2/3518 9\n": 3518, "0.1 0.2": 0, "0.1 0.2 0.3 2 9": 0, "0.1 0.2 0.3 2/x 9": 0} {
		if n, err := runningProcesses(text); n != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
