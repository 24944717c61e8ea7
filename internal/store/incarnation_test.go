package store

import (
	"fmt"
	"os"
	"testing"
)

// Incarnations differ by the start of their monitor, or by the lock file. Steps of one pod, in order.
func TestIncarnation(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	var lock *os.File
	take := func() {
		var err error
		if lock, err = p.Lock(); err != nil {
			t.Fatal(err)
		}
	}
	record := func(podInit, monitor, monitorStart int) {
		if err := os.WriteFile(p.lockFile(), fmt.Appendf(nil, "%d 7 %d %d\nserving\n", podInit, monitor, monitorStart), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]Incarnation{}
	for _, step := range []struct {
		name      string
		do        func()
		lives     []string // of the earlier incarnations
		succeeded []string
	}{
		{"starts", take, nil, nil},
		{"runs", func() { record(11, 10, 5) }, []string{"starts"}, nil},
		{"its pod init was killed", func() { record(12, 10, 5) }, []string{"starts", "runs"}, nil},
		{"ended", func() { lock.Close() }, nil, nil},
		{"another command has locked it", take, []string{"starts"}, nil},
		{"runs again, with a pid that was used before", func() { record(11, 10, 6) }, []string{"starts", "another command has locked it"}, []string{"runs", "its pod init was killed", "ended"}},
		{"another pod of its name starts", func() {
			if err := p.Remove(); err != nil {
				t.Fatal(err)
			}
			lock.Close()
			take()
		}, nil, []string{"starts", "runs", "its pod init was killed", "ended", "another command has locked it", "runs again, with a pid that was used before"}},
	} {
		step.do()
		lives, succeeded := map[string]bool{}, map[string]bool{}
		for _, name := range step.lives {
			lives[name] = true
		}
		for _, name := range step.succeeded {
			succeeded[name] = true
		}
		for name, i := range before {
			if p.Lives(i) != lives[name] || p.Succeeded(i) != succeeded[name] {
				t.Errorf("%s: %q lives: %v, has a successor: %v", step.name, name, p.Lives(i), p.Succeeded(i))
			}
		}
		before[step.name] = p.Incarnation()
		if now := before[step.name]; step.name != "ended" && !p.Lives(now) || p.Succeeded(now) {
			t.Errorf("%s: it does not live itself, or succeeds itself", step.name)
		}
	}
	lock.Close()
}
