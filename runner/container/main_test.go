package container

import (
	"testing"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/filter"
	"github.com/podrun/podrun/volumes"
)

// The test binary compiles seccomp profiles, as the supervisor program does. The path library keeps a
// descriptor of /proc from its first use on.
func TestMain(m *testing.M) {
	reexec.Main(map[string]func([]string) int{protocol.EntryFilter: filter.Main})
	testenv.Main(m, func() error {
		_, err := volumes.ReadFileIn("/", "/etc/passwd", 1<<20)
		return err
	})
}
