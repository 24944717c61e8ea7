package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
)

// A pod without runtime directory holds its name, and is lost only once its pod init has served it.
func TestLostRuntime(t *testing.T) {
	d := testDirs(t)
	p := d.Pod("default", "web")
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := p.Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	self, _ := procfs.Lookup(os.Getpid())
	record := func(start uint64, state string) {
		if err := os.WriteFile(p.lockFile(), fmt.Appendf(nil, "%d %d 1\n%s", self.PID, start, state), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want bool) {
		t.Helper()
		p := d.Pod("default", "web")
		podInit, lost := p.LostRuntime()
		if lost != want || lost && podInit != self.Process {
			t.Errorf("%s: %v, %v", what, podInit, lost)
		}
		if second, err := p.Lock(); err == nil {
			t.Errorf("%s: another process has locked the pod", what)
			second.Close()
		}
	}
	check("the pod starts", false)
	record(self.StartTime, "")
	check("it does not serve yet", false)
	record(self.StartTime, protocol.LockServing)
	listener, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	check("it serves", false)
	if err := os.RemoveAll(d.Runtime); err != nil {
		t.Fatal(err)
	}
	check("its directory is deleted", true)
	record(self.StartTime+1, protocol.LockServing)
	check("its pod init was killed", false)
	record(self.StartTime, protocol.LockServing)
	if err := d.Pod("default", "web").RestoreRuntime(); err != nil {
		t.Fatal(err)
	}
	check("its directory is empty", true)
	if err := d.Pod("default", "web").MarkRemoving(); err != nil {
		t.Fatal(err)
	}
	check("it is being removed", false)
	if err := os.RemoveAll(d.Runtime); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.data, planFile)); err != nil {
		t.Fatal(err)
	}
	check("it is removed but for its lock", false)
}

// A pod that begins to serve or ends at the moment of the look has not lost its directory.
func TestLostRuntimeWhileStarting(t *testing.T) {
	d := testDirs(t)
	p := d.Pod("default", "web")
	self, _ := procfs.Lookup(os.Getpid())
	serving := fmt.Appendf(nil, "%d %d 1\n%s", self.PID, self.StartTime, protocol.LockServing)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if err := liveOnce(p, serving); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	reader := d.Pod("default", "web")
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, lost := reader.LostRuntime(); lost {
			t.Error("a pod that is starting or ending has lost its runtime directory")
			<-done
			return
		}
	}
}

// liveOnce does what a pod and its removal do, with the record of a pod init that serves.
func liveOnce(p Pod, serving []byte) error {
	lock, err := p.Lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := p.Create(&pod.Plan{}, nil); err != nil {
		return err
	}
	listener, err := p.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if _, err := lock.WriteAt(serving, 0); err != nil {
		return err
	}
	return p.Remove()
}

// Commands, controllers, units and the pod's own processes find at the same time that the directory is lost.
func TestRestoreRuntimeTogether(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for range 20 {
		if err := os.RemoveAll(filepath.Join(p.DataDir(), protocol.FileRuntime)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(p.dirs.Runtime); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := p.RestoreRuntime(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// A pod that an earlier podrun has started has its lock in the runtime directory.
func TestFormerLock(t *testing.T) {
	d := testDirs(t)
	p := d.Pod("default", "web")
	if err := os.MkdirAll(p.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	former, err := LockExclusive(p.formerLockFile())
	if err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("the pod counts as dead")
	}
	if second, err := p.Lock(); err == nil {
		t.Error("the pod can be started twice")
		second.Close()
	}
	former.Close()
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
