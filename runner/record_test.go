package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// beginWhole starts a pod's processes, which record puts on record meanwhile.
func (w wholePod) beginWhole(plan *pod.Plan, record func() error) error {
	w.t.Helper()
	lock, err := w.place.Lock()
	if err != nil {
		w.t.Fatal(err)
	}
	defer lock.Close()
	return stage.StartPod(stage.PodStart{
		Programs: stage.Programs{Supervisor: "/proc/self/exe", Netstack: "/proc/self/exe"},
		Dirs:     w.dirs, Pod: w.place, Hostname: plan.Hostname, Lock: lock, Record: record,
	})
}

// wholeAt is a place for a pod, of which there is nothing.
func wholeAt(t *testing.T, plan *pod.Plan) wholePod {
	root := t.TempDir()
	w := wholePod{t: t, dirs: store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}}
	w.place = w.dirs.Pod(plan.Namespace, plan.Name)
	if err := os.Mkdir(w.dirs.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// The pod is put on record while its processes begin, and its supervisor waits for that.
func TestSupervisorAwaitsRecord(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	t.Cleanup(w.remove)
	err := w.beginWhole(plan, func() error {
		for deadline := time.Now().Add(time.Minute); ; {
			if _, _, lives := w.place.PodInit(); lives { // it has begun without a plan
				break
			}
			if time.Now().After(deadline) {
				return errors.New("no keeper within a minute")
			}
		}
		return w.place.Create(plan, []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until(running)
}

// A pod that cannot be put on record has no processes, and the reason is what is said.
func TestNotRecorded(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	full := errors.New("the disk is full")
	if err := w.beginWhole(plan, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("StartPod: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); w.place.Alive(); {
		if time.Now().After(deadline) {
			t.Fatal("its processes live after a minute")
		}
	}
	reapAll()
	said, err := os.ReadFile(w.place.SupervisorLog())
	if err != nil || !strings.Contains(string(said), "whoever began it has given up") {
		t.Errorf("the supervisor says %q, %v", said, err)
	}
}

// A pod stays in the runtime directory of an earlier login, which the supervisor finds by what
// is on record, however late that is.
func TestLateRecordOfAnotherRuntimeDirectory(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	earlier := store.Dirs{Data: w.dirs.Data, Runtime: filepath.Join(t.TempDir(), "earlier")}
	w.place = earlier.Pod(plan.Namespace, plan.Name)
	if err := os.Mkdir(w.dirs.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.remove)
	err := w.beginWhole(plan, func() error {
		supervisor, end := 0, time.Now().Add(time.Minute)
		for rests := 0; rests < 1000 && time.Now().Before(end); rests++ { // looks in a row at which it sleeps: it waits
			switch st, ok := stat(supervisor); {
			case !ok || st.name != "podrun-superv": // another child of the keeper, if any
				keeper, _, _ := w.place.PodInit()
				supervisor, rests = supervisorOf(keeper), 0
			case st.state != 'S':
				rests = 0
			}
		}
		return w.place.Create(plan, []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until(running)
}
