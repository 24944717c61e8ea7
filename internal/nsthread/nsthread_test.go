package nsthread

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// self returns the calling thread's namespace, or the error.
func self(kind string) string {
	ns, err := os.Readlink("/proc/thread-self/ns/" + kind)
	if err != nil {
		return err.Error()
	}
	return ns
}

func TestDoEntersAllAndLeavesNoThread(t *testing.T) {
	testenv.NoLeaks(t)
	proc := testenv.NewNamespaces(t, unix.CLONE_NEWNET|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS)
	home := self("net")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			err := Do(func() error {
				for _, kind := range []string{"net", "ipc", "uts"} {
					want, err := os.Readlink(proc + "/ns/" + kind)
					if err != nil {
						return err
					}
					if got := self(kind); got != want {
						t.Errorf("in %s, want %s", got, want)
					}
				}
				if unix.Gettid() == unix.Getpid() {
					t.Error("on the main thread")
				}
				return nil
			}, proc+"/ns/net", proc+"/ns/ipc", proc+"/ns/uts")
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range 50 {
		all.Go(func() {
			if got := self("net"); got != home {
				t.Errorf("an ordinary goroutine is in %s, want %s", got, home)
			}
		})
	}
	all.Wait()
}

// With one processor the next goroutine runs on the thread of the goroutine that started it, which is the
// main thread often enough for this test.
func TestDoLeavesTheMainThread(t *testing.T) {
	testenv.NoLeaks(t)
	proc := testenv.NewNamespaces(t, unix.CLONE_NEWUTS)
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	count := 0
	for range 2000 {
		if unix.Gettid() == unix.Getpid() {
			count++
		}
		err := Do(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("on the main thread")
			}
			return nil
		}, proc+"/ns/uts")
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("started from the main thread %d times", count)
}

func TestDoFails(t *testing.T) {
	testenv.NoLeaks(t)
	for _, file := range []string{"/nowhere", "/etc/passwd"} {
		err := Do(func() error { t.Error("ran anyhow"); return nil }, "/proc/self/ns/net", file)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("error %v, want one that names %s", err, file)
		}
	}
	if err := Do(func() error { runtime.Goexit(); return nil }, "/proc/self/ns/net"); err == nil {
		t.Error("no error from a function that never returned")
	}
}
