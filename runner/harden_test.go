package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A crash starts no program of the host's, and leaves no file.
func TestCrashesLeaveNothing(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	_, limits := p.exec("a", "/bin/sh", "-c", "cat /proc/1/limits; sh -c 'kill -SEGV $$'; ls /core* 2>/dev/null")
	pattern, err := os.ReadFile(corePattern)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(limits[strings.Index(limits, "Max core file size"):])
	if soft, hard := words[4], words[5]; strings.HasPrefix(string(pattern), "|") && (soft != "1" || hard != "1") || soft != "1" && soft != "0" {
		t.Errorf("core limits %s and %s, and the pattern is %s", soft, hard, pattern)
	}
	if strings.Contains(limits, "/core") {
		t.Errorf("a crash left a file: %s", limits)
	}
}
