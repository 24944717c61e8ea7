// Package script runs the built binary as a user would: every testdata/*.txtar is a list of
// commands with their expected output. The scripts run as an ordinary user, each with its own
// directories and image store. A script fails if it leaves a pod, a process or a mount behind.
//
// Beside testscript's own commands there are code, eventually, mode, registry, archive and
// nothingleft: see commands_test.go.
package script

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/test/internal/standin"
)

const (
	imageName = "busybox"
	rootfsTar = "ROOTFS"     // a tar of busybox's root file system
	binaryEnv = "PODRUN_BIN" // the binary under test; ../../bin/podrun if unset
)

func TestMain(m *testing.M) {
	standin.Become()
	testenv.UserMain(m)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	bin, rootfs := prepare(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands(),
		Setup:               func(env *testscript.Env) error { return setUp(env, bin, rootfs) },
		Condition:           func(cond string) (bool, error) { return condition(t, cond, bin) },
	})
}

// prepare copies the binary to a place where every user can run it, and makes the tar.
func prepare(t *testing.T) (bin, rootfs string) {
	t.Helper()
	source := os.Getenv(binaryEnv)
	if source == "" {
		source = "../../bin/podrun"
	}
	testenv.Need(t, func() error {
		_, err := os.Stat(source)
		return err
	})
	testenv.Need(t, testenv.Pods)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "podrun"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	rootfs = filepath.Join(dir, "rootfs.tar")
	if out, err := exec.Command("../../scripts/example-rootfs", rootfs).CombinedOutput(); err != nil {
		t.Fatalf("make the root file system: %v\n%s", err, out)
	}
	return dir, rootfs
}

// setUp creates a script's directories and imports the image.
func setUp(env *testscript.Env, bin, rootfs string) error {
	h, err := newHost(env.WorkDir, bin, rootfs)
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars, h.env...)
	h.env = env.Vars
	env.Values[hostKey{}] = h
	env.Defer(h.clear)
	return nil
}

// condition implements [delegated]: limits can be enforced here.
func condition(t *testing.T, cond, bin string) (bool, error) {
	if cond != "delegated" {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(bin, "podrun"), "doctor", "-o", "json")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	out, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("find out about limits: %w\n%s", err, out)
	}
	var output struct {
		Probes []struct{ Name, Level string }
	}
	if err := json.Unmarshal(out, &output); err != nil {
		return false, fmt.Errorf("find out about limits: %w", err)
	}
	for _, p := range output.Probes {
		if p.Name == "resource limits" {
			return p.Level == "ok", nil
		}
	}
	return false, fmt.Errorf("doctor has no probe of limits: %s", out)
}
