package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/podrun/podrun/internal/stage/trampoline"
)

// testTrampoline is the program that a release carries.
var testTrampoline = sync.OnceValue(func() *trampoline.Program {
	b, err := testProgram("trampoline", "../scripts/trampoline")
	if err != nil {
		panic(err)
	}
	p, err := trampoline.Seal(b)
	if err != nil {
		panic(err)
	}
	return p
})

// testProgram is a program that tests run: one that was built for a machine without a
// compiler, in testdata, or what a command makes that is given a file's name.
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
