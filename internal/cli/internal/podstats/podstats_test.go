package podstats

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/store"
)

// used is the usage of a pod with a container of the same name.
func used(name string, moment time.Time, cpu time.Duration, memory int64) Usage {
	sample := stats.Sample{At: moment, CPU: &cpu, Memory: &memory}
	p := store.Pod{Namespace: "default", Name: name}
	return Usage{Pod: p, Sample: sample, Containers: []Usage{{Pod: p, Name: name, Sample: sample}}}
}

// TestRates: the usage is the difference of two samples, the highest first; a pod without an earlier sample has none.
func TestRates(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := start.Add(2 * time.Second)
	before := []Usage{used("idle", start, time.Second, 9), used("busy", start, time.Second, 1)}
	after := []Usage{used("idle", end, time.Second, 9), used("new", end, time.Hour, 5), used("busy", end, 2*time.Second, 1)}
	for by, want := range map[string]string{"": "idle new busy", "cpu": "busy idle new", "memory": "idle new busy"} {
		var errOut bytes.Buffer
		v := &View{Env: &cmdutil.Env{ErrOut: &errOut}, By: by}
		var names []string
		for _, u := range v.Rates(before, append([]Usage{}, after...)) {
			names = append(names, u.Pod.Name)
			switch u.Pod.Name {
			case "new":
				if u.CPU != nil {
					t.Errorf("the rate of a new pod is %d", *u.CPU)
				}
			case "busy":
				if u.CPU == nil || *u.CPU != 500 || *u.Containers[0].CPU != 500 {
					t.Errorf("busy: %+v", u)
				}
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %q: %s, want %s", by, got, want)
		}
		v.Rates(before, after)
		if n := strings.Count(errOut.String(), "processes, disk, pressure: not available"); n != 1 {
			t.Errorf("reported %d times: %s", n, errOut.String())
		}
	}
}

// TestJSON: unknown values are left out; the pod has its namespace and the time, a container its name alone.
func TestJSON(t *testing.T) {
	moment := time.Date(2026, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600))
	u := used("web", moment, 1500*time.Millisecond, 7)
	got := u.JSON()
	if got.Namespace != "default" || got.Name != "web" || !got.Time.Equal(moment) || got.Time.Location() != time.UTC || *got.CPUTotal != 1.5 || *got.Memory != 7 {
		t.Errorf("%+v", got)
	}
	if got.CPU != nil || got.Pids != nil || got.Pressure != nil || got.Limits != nil {
		t.Errorf("unknown values are there: %+v", got)
	}
	if c := got.Containers; len(c) != 1 || c[0].Name != "web" || c[0].Namespace != "" || c[0].Time != nil {
		t.Errorf("%+v", c)
	}
}
