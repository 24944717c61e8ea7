package nsthread

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestStay(t *testing.T) {
	testenv.NoLeaks(t)
	ns := testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	want, err := os.Readlink(ns)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := Stay(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	for range 3 {
		var got string
		err := thread.Do(func() (err error) {
			got, err = os.Readlink("/proc/thread-self/ns/net")
			return err
		})
		if err != nil || got != want {
			t.Errorf("ran in %s (%v), want %s", got, err, want)
		}
	}
	word := errors.New("its own")
	if err := thread.Do(func() error { return word }); err != word {
		t.Errorf("error %v, want the function's own", err)
	}
}

func TestStayRefuses(t *testing.T) {
	testenv.NoLeaks(t)
	if _, err := Stay("/proc/self/ns/none"); err == nil {
		t.Error("stays in a namespace that there is not")
	}
}
