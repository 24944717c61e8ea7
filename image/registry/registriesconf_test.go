package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/internal/report"
)

func TestRegistries(t *testing.T) {
	for name, tt := range map[string]struct{ conf, want, err string }{
		"blocked and mirrored": {
			"[[registry]]\nprefix = \"docker.io\"\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"mirror.example\"\n[[registry]]\nlocation = \"bad.example\"\nblocked = true\n",
			"has 2 registries, 1 blocked, 1 with mirrors", "",
		},
		"nothing":       {"", "registries.conf changes nothing", ""},
		"broken":        {"[[registry\n", "", "registries.conf"},
		"contradictory": {"[[registry]]\n", "", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registries.conf")
			if err := os.WriteFile(path, []byte(tt.conf), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := describeConfig(&types.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: t.TempDir()})
			switch {
			case tt.err == "" && (err != nil || !strings.Contains(got, tt.want)):
				t.Errorf("got %q, %v", got, err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(report.Hint(err), "correct "+path)):
				t.Errorf("got %q, %v, hint %q", got, err, report.Hint(err))
			}
		})
	}
}
