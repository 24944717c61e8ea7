package timerslack

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// While the program is busy, the monitor thread sleeps for a short time again and again.
func TestMonitorThread(t *testing.T) {
	thread, err := monitorThread()
	if err != nil {
		t.Fatal(err)
	}
	sleeps := fmt.Sprint(unix.SYS_NANOSLEEP, " ")
	for end := time.Now().Add(time.Minute); ; {
		call, err := os.ReadFile("/proc/self/task/" + thread + "/syscall")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(call), sleeps) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the thread was never asleep; it is in the system call %s", call)
		}
	}
}

// The monitor thread gets the wide timer slack, and a process that is made on a thread with another one has the timer slack of the
// main thread.
func TestWidenMonitor(t *testing.T) {
	slackOf := func(pid string) string {
		text, err := os.ReadFile("/proc/" + pid + "/timerslack_ns")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	WidenMonitor()
	thread, err := monitorThread()
	if err != nil {
		t.Fatal(err)
	}
	if got := slackOf(thread); got != fmt.Sprint(wide) {
		t.Errorf("the monitor thread has a slack of %s", got)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, wide, 0, 0, 0)
	var made []byte
	err = WithMain(func() (err error) {
		made, err = exec.Command("cat", "/proc/self/timerslack_ns").Output()
		return err
	})
	if want := slackOf("self"); err != nil || string(made) != want+"\n" {
		t.Errorf("a process has a slack of %s(%v), the main thread of %s", made, err, want)
	}
}
