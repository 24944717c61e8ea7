package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/podrun/podrun/internal/stage/trampoline"
)

// testTrampoline is the program that a release carries, compiled for this test.
var testTrampoline = sync.OnceValue(func() *trampoline.Program {
	program, err := compileTrampoline()
	if err != nil {
		panic(err)
	}
	return program
})

func compileTrampoline() (*trampoline.Program, error) {
	dir, err := os.MkdirTemp("", "trampoline")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "trampoline")
	if said, err := exec.Command("../scripts/trampoline", out).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the trampoline: %w: %s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	return trampoline.Seal(b)
}
