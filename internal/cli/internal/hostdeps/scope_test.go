package hostdeps

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/systemd"
)

func TestScopeValues(t *testing.T) {
	for name, tt := range map[string]struct {
		in   pod.Resources
		want systemd.ScopeValues
	}{
		"nothing set":      {pod.Resources{}, systemd.ScopeValues{CPUWeight: 1}},
		"a request":        {pod.Resources{CPURequest: 100, CPULimit: 1000}, systemd.ScopeValues{CPUWeight: 17}},
		"only a limit":     {pod.Resources{CPULimit: 1000}, systemd.ScopeValues{CPUWeight: 100}},
		"protected memory": {pod.Resources{MemoryMin: 1, MemoryLow: 2}, systemd.ScopeValues{CPUWeight: 1, MemoryMin: 1, MemoryLow: 2}},
		"limits only":      {pod.Resources{MemoryLimit: 4096, MemoryHigh: 2048, Pids: 9}, systemd.ScopeValues{CPUWeight: 1}},
	} {
		if got := scopeValues(tt.in); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
