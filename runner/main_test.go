package runner

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/seccomp"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/netstack"
	"github.com/podrun/podrun/volumes"
)

// The engine runs in the tests' own process: no goroutine of libcontainer's that
// enters a container's namespaces may take the main thread.
func init() { runtime.LockOSThread() }

// The test binary is its own supervisor and its own container init.
func TestMain(m *testing.M) {
	if !seccomp.Enabled {
		fmt.Fprintln(os.Stderr, "runner: this was built without podrun's build tags, with which containers have their system call filter: use make test, or in bash: . scripts/env.sh; go_env; go test ./runner")
		os.Exit(1)
	}
	stages := Stages()
	maps.Copy(stages, netstack.Stages())
	stages[intruder] = intrude
	stages[caller] = calls
	stage.Main(stages)
	testenv.Main(m, func() error {
		testTrampoline()
		// The cgroup and the path library keep a handle from their first use on.
		if f, err := cgroups.OpenFile("/sys/fs/cgroup", "cgroup.procs", os.O_RDONLY); err == nil {
			f.Close()
		}
		_, err := volumes.ReadFileIn("/", "/etc/passwd", 1<<20)
		return err
	})
}
