package runner

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/seccomp"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/netstack"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/volumes"
)

// The engine runs in the tests' own process: no goroutine of libcontainer that enters a container's
// namespaces may run on the main thread.
func init() { runtime.LockOSThread() }

// The test binary is its own supervisor and its own container init.
func TestMain(m *testing.M) {
	if !seccomp.Enabled {
		fmt.Fprintln(os.Stderr, "runner: this was built without podrun's build tags, with which containers have their system call filter: use make test, or in bash: . scripts/env.sh; go_env; go test ./runner")
		os.Exit(1)
	}
	entryPoints := EntryPoints()
	maps.Copy(entryPoints, netstack.EntryPoints())
	entryPoints[intruder] = intrude
	entryPoints[caller] = calls
	if path := os.Getenv(envShim); path != "" { // this process is the supervisor of a test that wants the exec shim
		container.EmbeddedShim = sync.OnceValue(func() *execshim.Program {
			b, err := os.ReadFile(path)
			if err != nil {
				panic(err)
			}
			p, err := execshim.NewProgram(b)
			if err != nil {
				panic(err)
			}
			return p
		})
	}
	reexec.Main(entryPoints)
	testenv.Main(m, func() error {
		testShim()
		// The cgroup and the path library keep a descriptor from their first use on.
		if f, err := cgroups.OpenFile("/sys/fs/cgroup", "cgroup.procs", os.O_RDONLY); err == nil {
			f.Close()
		}
		_, err := volumes.ReadFileIn("/", "/etc/passwd", 1<<20)
		return err
	})
}

// envShim is the variable by which withShim passes the file of the exec shim to supervisors.
const envShim = "PODRUN_TEST_EXECSHIM"

// withShim lets the supervisors of a test's pods have the program that a release embeds.
func withShim(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "execshim")
	if err := os.WriteFile(file, shimBytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envShim, file)
}

// shimBytes returns the program that a release embeds.
var shimBytes = sync.OnceValue(func() []byte {
	b, err := testProgram("execshim", "../scripts/execshim")
	if err != nil {
		panic(err)
	}
	return b
})

// testShim returns the exec shim of pods in the tests' own process.
var testShim = sync.OnceValue(func() *execshim.Program {
	p, err := execshim.NewProgram(shimBytes())
	if err != nil {
		panic(err)
	}
	return p
})

// testProgram returns a program that tests run: one that was built in testdata for a machine without a
// compiler, or the output of a build command, to which a file name is appended.
func testProgram(name string, build ...string) ([]byte, error) {
	if b, err := os.ReadFile(filepath.Join("testdata", name)); err == nil {
		return b, nil
	}
	dir, err := os.MkdirTemp("", "podrun")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, name)
	if said, err := exec.Command(build[0], append(build[1:], out)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s: %w: %s", name, err, said)
	}
	return os.ReadFile(out)
}
