package runner

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// S23, S26: what a container sees of others and of podrun: nothing across pods, and in a
// pod its siblings' processes only if they are shared; the supervisor and the keeper
// never.
func TestWhatContainersSeeOfOthers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for _, shared := range []bool{false, true} {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "echo mine >/dev/shm/mine; exec sleep 1111"), shell(l, "b", "exec sleep 2222")})
		plan.ShareProcessNamespace = shared
		p := start(t, plan)
		other := start(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 3333")}), "q"))
		p.running()
		other.running()
		waitFor := "until test -e /dev/shm/mine; do usleep 1000; done; "
		_, seen := p.exec("b", "/bin/sh", "-c", waitFor+"cat /dev/shm/mine; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		for word, want := range map[string]bool{"mine": true, "sleep 2222": true, "sleep 1111": shared, "sleep 3333": false, "_supervisor": false, "_keeper": false} {
			if strings.Contains(seen, word) != want {
				t.Errorf("shared %v: %q is seen: %v, in %q", shared, word, !want, seen)
			}
		}
		_, far := other.exec("c", "/bin/sh", "-c", "ls /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		for _, word := range []string{"mine", "sleep 1111", "sleep 2222", "_supervisor"} {
			if strings.Contains(far, word) {
				t.Errorf("another pod sees %q: %q", word, far)
			}
		}
		p.stop(0)
		other.stop(0)
	}
}

// Keys of the user's session are not a container's, even of one with no filter.
func TestKeysOfTheUserAreNotSeen(t *testing.T) {
	testenv.NoLeaks(t)
	const name = "podrun-test-key"
	runtime.LockOSThread() // a session is a thread's, and its children's
	defer runtime.UnlockOSThread()
	if _, err := unix.KeyctlJoinSessionKeyring("podrun-test"); err != nil {
		t.Fatal(err)
	}
	key, err := unix.AddKey("user", name, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	const ofItsSession = 0x3f000000 // everything, and for nobody else
	if err := unix.KeyctlSetperm(key, ofItsSession); err != nil {
		t.Fatal(err)
	}
	c := shell(layer(t), "a", "cat /proc/keys; exec sleep 1000")
	c.ProcUnmasked, c.SeccompUnconfined = true, true
	plan := newPlan(nil, []pod.Container{c})
	w := startWhole(t, plan)
	w.until(running)
	code, out := w.ask("a", "cat", "/proc/keys")
	if code != 0 || strings.Contains(out, name) || strings.Contains(logText(t, w.place, "a", 0), name) {
		t.Errorf("the user's keys are seen: %d %s", code, out)
	}
}
