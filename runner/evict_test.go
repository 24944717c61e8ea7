package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

func TestMeter(t *testing.T) {
	const mi = 1 << 20
	limit := func(kind pod.LimitKind, name string, n int64) pod.Limit {
		return pod.Limit{Kind: kind, Name: name, Bytes: n, Message: string(kind) + " " + name}
	}
	plan := &pod.Plan{
		Volumes:        []pod.Volume{{Name: "v", Kind: pod.EmptyDir}, {Name: "none", Kind: pod.EmptyDir}, {Name: "m", Kind: pod.EmptyDirMemory}},
		InitContainers: []pod.Container{{Name: "i"}}, Containers: []pod.Container{{Name: "a"}, {Name: "b"}},
	}
	place := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "p")
	for path, n := range map[string]int{
		filepath.Join(place.VolumesDir(), "v", "d", "f"):             2 * mi,
		filepath.Join(place.RootfsDir(), "a-3", "upper", "f"):        2 * mi,
		filepath.Join(place.RootfsDir(), "a-3", "merged", "image"):   9 * mi, // is not the container's doing
		filepath.Join(place.RootfsDir(), "a-2", "upper", "leftover"): 9 * mi,
		place.LogFile("a", 2): mi,
		place.LogFile("a", 3): mi,
		place.LogFile("i", 0): mi,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deep := filepath.Join(place.VolumesDir(), "deep") + strings.Repeat("/d", 300)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		limits []pod.Limit
		want   string
		sum    int64 // in MiB
	}{
		{"nothing exceeded", []pod.Limit{limit(pod.VolumeLimit, "v", 3*mi), limit(pod.PodLimit, "", 8*mi), limit(pod.ContainerLimit, "a", 5*mi)}, "", 7},
		{"a volume", []pod.Limit{limit(pod.VolumeLimit, "none", 1), limit(pod.VolumeLimit, "v", mi)}, "volume v", 2},
		{"a container: its layer and its logs", []pod.Limit{limit(pod.ContainerLimit, "b", 1), limit(pod.ContainerLimit, "a", 3*mi)}, "container a", 4},
		{"the pod: all of that, once", []pod.Limit{limit(pod.VolumeLimit, "v", 3*mi), limit(pod.PodLimit, "", 6*mi)}, "pod ", 7},
		{"the first counts", []pod.Limit{limit(pod.VolumeLimit, "v", 1), limit(pod.PodLimit, "", 1)}, "volume v", 2},
		{"what cannot be counted", []pod.Limit{limit(pod.VolumeLimit, "deep", 100*mi)}, "volume deep", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := meter{place: place, layers: map[string]string{"a": "a-3"}}
			plan.Storage = tt.limits
			got, err := m.exceeded(plan)
			if err != nil || got != tt.want || m.sum/mi != tt.sum {
				t.Errorf("got %q, %v, %d bytes in all; want %q, %d MiB", got, err, m.sum, tt.want, tt.sum)
			}
		})
	}
}

// A pod whose volume has grown over its limit has failed, and says why.
func TestEviction(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a := shell(l, "a", "head -c 2000000 /dev/zero > /v/f; trap 'exit 0' TERM; while :; do sleep 0.05; done")
	a.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	plan := newPlan(nil, []pod.Container{a, shell(l, "b", "exec sleep 1000")})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	const message = `Usage of EmptyDir volume "v" exceeds the limit "1Mi". `
	plan.Storage = []pod.Limit{{Kind: pod.VolumeLimit, Name: "v", Bytes: 1 << 20, Message: message}}
	p := start(t, plan)
	st := p.ended()
	if st.Phase != pod.Failed || st.Reason != "Evicted" || st.Message != message {
		t.Errorf("%s %s %q", st.Phase, st.Reason, st.Message)
	}
	if c := st.Containers[0].State.Terminated; c == nil || c.ExitCode != 0 {
		t.Errorf("a had no time to end: %+v", c)
	}
	all, err := p.place.Events()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, e := range all {
		seen[e.Reason+" "+e.Container] = e.Message
	}
	for what, want := range map[string]string{"Evicted ": message, "Started a": "Container started", "Killing b": "Stopping container b"} {
		if got, ok := seen[what]; !ok || got != want {
			t.Errorf("event %q says %q, want %q; all: %v", what, got, want, seen)
		}
	}
}

// A supervisor that dozes wakes to measure, and no event is lost by its sleep.
func TestDozingSupervisorEvicts(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", "read x < /v/fifo; head -c 2000000 /dev/zero > /v/f; exec sleep 1000")
	a.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	init := shell(a.Layers[0], "i", "mkfifo /v/fifo")
	init.Mounts = a.Mounts
	plan := newPlan([]pod.Container{init}, []pod.Container{a})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.Storage = []pod.Limit{{Kind: pod.VolumeLimit, Name: "v", Bytes: 1 << 20, Message: "too much"}}
	w, _ := drowsy(t, plan)
	before, err := w.place.Events()
	if err != nil || len(before) == 0 {
		t.Fatalf("events while it dozes: %v, %v", before, err)
	}
	fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fifo.Close()
	w.until(func(st *pod.Status) bool { return st.Phase == pod.Failed })
	after, err := w.place.Events()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	var last time.Time
	for _, e := range after {
		count[e.Reason] += e.Count
		if e.Last.Before(last) {
			t.Errorf("events are not in order: %v", after)
		}
		last = e.Last
	}
	if count["Started"] != 2 || count["Evicted"] != 1 || count["Killing"] != 1 {
		t.Errorf("events: %v", after)
	}
}
