package store

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
)

func testWorkload(t *testing.T, d Dirs) Workload {
	t.Helper()
	w, err := d.Workload(pod.KindDeployment, "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWorkloadLivesAndGoes(t *testing.T) {
	d := testDirs(t)
	if err := os.MkdirAll(d.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	w := testWorkload(t, d)
	if err := d.PutObject(&pod.Object{Kind: pod.KindDeployment, Namespace: "default", Name: "web", UID: "u"}); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Workloads("", pod.Workloads()...); err != nil || len(list) != 1 || list[0] != w {
		t.Errorf("workloads %v: %v", list, err)
	}
	type state struct{ N int }
	if err := w.ReadState(&state{}); err != nil {
		t.Errorf("state of one that has none: %v", err)
	}
	if err := w.WriteState(state{3}); err != nil {
		t.Fatal(err)
	}
	var got state
	if err := w.ReadState(&got); err != nil || got.N != 3 {
		t.Errorf("state %v: %v", got, err)
	}
	lock, err := w.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if alive, boot, pid := w.Controller(); !alive || boot != BootID() || pid != os.Getpid() {
		t.Errorf("controlled: %v in %q", alive, boot)
	}
	if _, err := w.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	o, err := w.Object()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "of-before"} { // what is made since the removal of another one stays
		if err := w.Remove(other); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Object(); err != nil {
		t.Errorf("after the removal of one of the same name: %v", err)
	}
	if err := w.Remove(o.UID); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if alive, boot, _ := w.Controller(); alive || boot != "" {
		t.Errorf("after its removal: controlled %v in %q", alive, boot)
	}
	if _, err := w.Object(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
	if _, err := d.Workload(pod.KindDeployment, "default", "../x"); err == nil {
		t.Error("a path was taken for a name")
	}
}

// TestWatch: a Watch reports a status, the end of a pod's processes and a changed object. It does
// not report reads.
func TestWatch(t *testing.T) {
	d := testDirs(t)
	p, w := d.Pod("default", "web"), testWorkload(t, d)
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	object := &pod.Object{Kind: pod.KindDeployment, Namespace: "default", Name: "web"}
	if err := d.PutObject(object); err != nil {
		t.Fatal(err)
	}
	received := func(what string, want bool, do func() error) {
		t.Helper()
		watch, err := NewWatch()
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		if err := errors.Join(watch.Pod(p), watch.Workload(w), do()); err != nil {
			t.Fatal(err)
		}
		limit := 0
		if want {
			limit = int(time.Minute.Milliseconds())
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(watch.FD()), Events: unix.POLLIN}}, limit)
		if err != nil || (n == 1) != want {
			t.Errorf("%s: heard %v, want %v: %v", what, n == 1, want, err)
		}
	}
	status := func() error { return p.WriteStatus(&pod.Status{Phase: pod.Running}) }
	received("the first status", true, status)
	received("another status", true, status)
	received("looking", false, func() error {
		if !p.Alive() {
			return errors.New("not alive")
		}
		_, err := p.Status()
		return err
	})
	received("an event", false, func() error { return p.WriteEvents(&pod.EventLog{}) })
	received("a changed object", true, func() error { return d.PutObject(object) })
	received("what is remembered, for the first time", false, func() error { return w.WriteState(1) })
	received("what is remembered", true, func() error { return w.WriteState(2) })
	received("the end of the processes", true, lock.Close)
	received("a deleted object", true, func() error { return d.DeleteObject(pod.KindDeployment, "default", "web") })
	received("the pod's removal", true, p.Remove)
	received("a pod that is not there", false, func() error { return nil })
}
