package runner

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A keeper that may open fewer descriptors than it has waits all the same, costs nothing
// and hears what it waits for.
func TestKeeperWithFewDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	w, keeper := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	var was unix.Rlimit
	if err := unix.Prlimit(keeper, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(keeper, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 2, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(keeper, unix.SIGCHLD); err != nil { // it looks anew
		t.Fatal(err)
	}
	before := ticks(t, keeper)
	idle(500 * time.Millisecond)
	if spent := ticks(t, keeper) - before; spent > 10 {
		t.Errorf("it has spent %d ticks of half a second", spent)
	}
	if err := unix.Prlimit(keeper, unix.RLIMIT_NOFILE, &was, nil); err != nil { // which its supervisor inherits
		t.Fatal(err)
	}
	if code, out := w.ask("a", "echo", "heard"); code != 0 || out != "heard\n" {
		t.Errorf("it does not wake a supervisor: %d %q", code, out)
	}
}

// ticks are the hundredths of a second of a processor that a process has had.
func ticks(t *testing.T, pid int) (sum int) {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	for _, field := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
