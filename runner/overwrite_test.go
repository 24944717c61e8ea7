package runner

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// CVE-2019-5736 (S2): no container writes to podrun's program, whatever way its own
// program leads there. Here the program is the test binary.
func TestProgramCannotBeOverwritten(t *testing.T) {
	testenv.NoLeaks(t)
	before := programSum(t)
	l := layer(t)
	if err := os.WriteFile(l+"/bin/script", []byte("#!/proc/self/exe\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/exe", l+"/bin/itself"); err != nil {
		t.Fatal(err)
	}
	// The writer runs all the while: it sees every process that enters.
	writer := shell(l, "writer", "while :; do for p in /proc/[0-9]*; do echo evil > $p/exe; done; done 2>/dev/null")
	writer.Capabilities = append(writer.Capabilities, "CAP_SYS_PTRACE")
	plan := newPlan(nil, []pod.Container{writer})
	plan.ShareProcessNamespace = true
	p := start(t, plan)
	p.running()
	for range 4 * *torture {
		for _, program := range []string{"/bin/script", "/bin/itself", "/proc/self/exe"} {
			p.exec("writer", program, "_supervisor")
		}
	}
	if after := programSum(t); after != before {
		t.Errorf("the program has changed from %s to %s", before, after)
	}
	if code, out := p.exec("writer", "/bin/sh", "-c", "ls -A /proc/1/root/; : > /proc/1/exe"); code == 0 || strings.Count(out, "Permission denied") != strings.Count(out, "\n") {
		t.Errorf("the pause process leads out: code %d, %s", code, out)
	}
}

func programSum(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}
