package podinit

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A first process that waits is for a pod with the same ids and the same user namespace, if it is ready and alive.
func TestFirstIsUsableFor(t *testing.T) {
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	namespace, other := open("/proc/self/ns/user"), open("/proc/self/ns/mnt")
	ids := []string{"_PODRUN_UIDMAP=0 1000 1"}
	for name, c := range map[string]struct {
		joins, user *os.File
		ids         []string
		failed, end bool
		want        bool
	}{
		"it makes the namespace":           {nil, nil, ids, false, false, true},
		"it has joined the namespace":      {namespace, open("/proc/self/ns/user"), ids, false, false, true},
		"it has joined another":            {other, namespace, ids, false, false, false},
		"there is a namespace now":         {nil, namespace, ids, false, false, false},
		"there is no namespace any more":   {namespace, nil, ids, false, false, false},
		"the ids have changed":             {nil, nil, []string{"_PODRUN_UIDMAP=0 1000 1 1 100000 65536"}, false, false, false},
		"it could not enter the namespace": {nil, nil, ids, true, false, false},
		"it has ended since":               {nil, nil, ids, false, true, false},
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		joined, err := identity(c.joins)
		if err != nil {
			t.Fatal(err)
		}
		ready := func() error {
			if c.failed {
				return errors.New("failed")
			}
			return nil
		}
		f := &First{cmd: &exec.Cmd{}, socket: os.NewFile(uintptr(pair[0]), "socket"), ids: ids, user: joined, ready: ready}
		peer := os.NewFile(uintptr(pair[1]), "socket")
		if c.end {
			peer.Close()
		}
		if got := f.usableFor(c.ids, c.user); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		f.socket.Close()
		peer.Close()
	}
	if (*First)(nil).usableFor(nil, nil) {
		t.Error("no process is usable")
	}
}
