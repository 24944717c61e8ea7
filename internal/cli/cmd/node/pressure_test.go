package node

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/node/eviction"
)

// TestParsePressure: an error names the flag.
func TestParsePressure(t *testing.T) {
	p, err := parsePressure(map[string][]string{"system-reserved": {"cpu=1"}, "kube-reserved": {"cpu=1"}}, eviction.Defaults())
	if err != nil || len(p.Reserved) != 2 || len(p.Thresholds) != 5 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := parsePressure(map[string][]string{"kube-reserved": {"pid=1"}}, nil); err == nil || !strings.HasPrefix(err.Error(), `--kube-reserved: "pid=1"`) {
		t.Error(err)
	}
	if _, err := parsePressure(map[string][]string{"kube-reserved": {"pid=1"}, "system-reserved": {"pid=2"}}, nil); err == nil || !strings.HasPrefix(err.Error(), `--system-reserved: "pid=2"`) {
		t.Error(err)
	}
	if _, err := parsePressure(nil, []string{"cpu<1"}); err == nil || !strings.HasPrefix(err.Error(), `--eviction-hard: "cpu<1"`) {
		t.Error(err)
	}
}

// TestLower: a limit of all pods counts if it leaves less than the machine has; a signal that is not known stays so.
func TestLower(t *testing.T) {
	for _, tc := range []struct {
		available *int64
		want      eviction.Observation
	}{
		{nil, eviction.Observation{Available: 50, Capacity: 100}},
		{new(int64(10)), eviction.Observation{Available: 10, Capacity: 60}},
		{new(int64(55)), eviction.Observation{Available: 50, Capacity: 60}},
	} {
		o := eviction.Observations{eviction.MemoryAvailable: {Available: 50, Capacity: 100}}
		lower(o, eviction.MemoryAvailable, tc.available, 60)
		lower(o, eviction.PIDAvailable, tc.available, 60)
		if o[eviction.MemoryAvailable] != tc.want || len(o) != 1 {
			t.Errorf("%v, want %v", o, tc.want)
		}
	}
}

// TestSampled: what the kernel does not measure is not known.
func TestSampled(t *testing.T) {
	pod := &podstats.Usage{Sample: stats.Sample{Memory: new(int64(30))}, Containers: []podstats.Usage{{Name: "a", Sample: stats.Sample{Memory: new(int64(20))}}, {Name: "b"}}}
	if u, known := sampled(pod, corev1.ResourceMemory); !known || u.Total != 30 || !maps.Equal(u.Containers, map[string]int64{"a": 20}) {
		t.Errorf("memory: %v, %+v", known, u)
	}
	if u, known := sampled(pod, eviction.PIDs); known {
		t.Errorf("processes: %+v", u)
	}
}

// TestDevices: a kind is a resource if its name is one. An error is printed once.
func TestDevices(t *testing.T) {
	var out bytes.Buffer
	r := &factReader{env: cmdutil.New(nil, nil, nil, nil, &out), kinds: func() ([]cdi.Kind, error) {
		return []cdi.Kind{{Name: "example.com/card", Units: []string{"0", "1"}}, {Name: "EXAMPLE.com/card", Units: []string{"0"}}, {Name: "kubernetes.io/card", Units: []string{"0"}}}, errors.New("card.yaml is broken")
	}}
	for range 2 {
		if got := r.devices(); !maps.Equal(got, map[corev1.ResourceName]int64{"example.com/card": 2}) {
			t.Errorf("devices %v", got)
		}
	}
	if got := strings.Count(out.String(), "card.yaml is broken"); got != 1 {
		t.Errorf("it printed %s", &out)
	}
}
