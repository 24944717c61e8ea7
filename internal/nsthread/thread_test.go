package nsthread

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestStart(t *testing.T) {
	testenv.NoLeaks(t)
	ns := testenv.NewNamespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	want, err := os.Readlink(ns)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := Start(ns)
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

func TestStartFails(t *testing.T) {
	testenv.NoLeaks(t)
	if _, err := Start("/proc/self/ns/none"); err == nil {
		t.Error("stays in a namespace that there is not")
	}
}
