package runner

import (
	"runtime"
	"testing"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/testenv"
)

// The engine runs in the tests' own process: no goroutine of libcontainer's that
// enters a container's namespaces may take the main thread.
func init() { runtime.LockOSThread() }

// The test binary is its own supervisor and its own container init.
func TestMain(m *testing.M) {
	stage.Main(Stages())
	testenv.Main(m)
}
