package webui

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// stepTimeout is long enough for a busy machine.
const stepTimeout = 3 * time.Minute

func TestMain(m *testing.M) { testenv.UserMain(m) }

// machine is the built binary with its own directories and an image.
type machine struct {
	t      *testing.T
	binary string
	env    []string
	ui     *exec.Cmd
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	source := cmp.Or(os.Getenv("PODRUN_BIN"), "../../bin/podrun")
	testenv.Need(t, func() error {
		_, err := os.Stat(source)
		return err
	})
	testenv.Need(t, func() error {
		_, err := exec.LookPath(program)
		return err
	})
	testenv.Need(t, testenv.Pods)
	home := t.TempDir()
	m := &machine{t: t, binary: filepath.Join(home, "podrun"), env: os.Environ()}
	// Copy it: an ordinary user may lack access to the checkout.
	program, err := os.ReadFile(source)
	if err == nil {
		err = os.WriteFile(m.binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for variable, name := range map[string]string{"XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run", "HOME": "home"} {
		path := filepath.Join(home, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		m.env = append(m.env, variable+"="+path)
	}
	rootfs := filepath.Join(home, "rootfs.tar")
	if out, err := exec.Command("../../scripts/example-rootfs", rootfs).CombinedOutput(); err != nil {
		t.Fatalf("make the root file system: %v\n%s", err, out)
	}
	m.podrun("", "image", "import", rootfs, "busybox")
	t.Cleanup(func() {
		// These fail if what they remove is gone, as expected.
		m.command(context.Background(), "down", "--force", "--all").Run()
		m.command(context.Background(), "image", "rm", "busybox", "other").Run()
	})
	return m
}

func (m *machine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, m.binary, args...)
	cmd.Env = m.env
	return cmd
}

// podrun runs a command that has to succeed in time, and returns what it prints.
func (m *machine) podrun(stdin string, args ...string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), stepTimeout)
	defer cancel()
	cmd := m.command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("podrun %s: %v\n%s%s", strings.Join(args, " "), err, out, failure.String())
	}
	return string(out)
}

// serve starts podrun ui and returns the address that it prints.
func (m *machine) serve() string {
	m.t.Helper()
	m.ui = m.command(context.Background(), "ui", "--port", "0")
	m.ui.Stderr = m.t.Output()
	out, err := m.ui.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.ui.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		m.ui.Process.Kill() // it has exited, unless the test has failed
		m.ui.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.t.Fatalf("podrun ui prints no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// end ends podrun ui as Ctrl-C does.
func (m *machine) end() {
	m.t.Helper()
	if err := m.ui.Process.Signal(syscall.SIGINT); err != nil {
		m.t.Fatal(err)
	}
	if err := m.ui.Wait(); err != nil {
		m.t.Errorf("podrun ui ends with %v", err)
	}
}
