package examples

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

const (
	dir         = "../../examples"
	stepTimeout = 3 * time.Minute // timeout of each step
)

func TestMain(m *testing.M) { testenv.UserMain(m) }

// podrun is the built binary with its own directories and the example image.
type podrun struct {
	binary, home string
	env          []string
}

// source returns the path of the binary under test.
func source() string { return cmp.Or(os.Getenv("PODRUN_BIN"), "../../bin/podrun") }

func setUp(t *testing.T) *podrun {
	t.Helper()
	testenv.Need(t, func() error {
		_, err := os.Stat(source())
		return err
	})
	testenv.Need(t, testenv.Pods)
	home := t.TempDir()
	p := &podrun{binary: filepath.Join(home, "podrun"), home: home, env: os.Environ()}
	// Copy it: an ordinary user may lack access to the checkout.
	program, err := os.ReadFile(source())
	if err == nil {
		err = os.WriteFile(p.binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct{ variable, name string }{{"XDG_DATA_HOME", "data"}, {"XDG_RUNTIME_DIR", "run"}} {
		path := filepath.Join(home, d.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		p.env = append(p.env, d.variable+"="+path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../scripts/example-image", p.binary)
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the example image: %v\n%s", err, out)
	}
	t.Cleanup(func() { p.command(context.Background(), "image", "rm", "localhost/podrun-example:1").Run() })
	return p
}

func (p *podrun) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Env = p.env
	return cmd
}

// run returns the command's output; it fails the test unless the command succeeds in time.
func (p *podrun) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	var output strings.Builder
	cmd := p.command(ctx, args...)
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("podrun %s: %v\n%s%s", strings.Join(args, " "), err, out, output.String())
	}
	return string(out)
}

// start runs a command in the background; its output goes to the test's.
func (p *podrun) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := p.command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// logged follows a container's log until it matches.
func (p *podrun) logged(t *testing.T, pod, container, pattern string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	want := regexp.MustCompile(pattern)
	for { // `logs` fails until the pod exists
		text := p.follow(ctx, want, pod, container)
		if want.MatchString(text) {
			return
		}
		if ctx.Err() != nil || p.ended(ctx, pod) {
			t.Fatalf("container %s did not write %q, but:\n%s", container, pattern, text)
		}
	}
}

func (p *podrun) follow(ctx context.Context, want *regexp.Regexp, pod, container string) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := p.command(ctx, "logs", "-f", pod, "-c", container)
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return ""
	}
	defer cmd.Wait()
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&text, lines.Text())
		if want.MatchString(text.String()) {
			cancel()
			break
		}
	}
	return text.String()
}

// ended reports whether the pod exists and writes no more.
func (p *podrun) ended(ctx context.Context, pod string) bool {
	out, err := p.command(ctx, "get", pod, "-o", "json").Output()
	return err == nil && regexp.MustCompile(`"phase": *"(Succeeded|Failed)"`).Match(out)
}

// matches fails the test unless some line of a command's output finally matches.
func (p *podrun) matches(t *testing.T, pattern string, args ...string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(stepTimeout); ; time.Sleep(50 * time.Millisecond) {
		out := p.run(t, args...)
		if slices.ContainsFunc(strings.Split(out, "\n"), want.MatchString) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("podrun %s: no line matches %q:\n%s", strings.Join(args, " "), pattern, out)
			return
		}
	}
}

// cleanUp removes the pod at the end of the test.
func (p *podrun) cleanUp(t *testing.T, pod string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		p.command(ctx, "down", "--force", pod).Run() // it fails if the pod is gone, as expected
	})
}

// nothingLeft fails the test if a process or a file of a pod remains.
func (p *podrun) nothingLeft(t *testing.T) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		args, err := os.ReadFile(l)
		if err == nil && strings.Contains(string(args), p.home) {
			t.Errorf("a process is left: %s: %q", l, args)
		}
	}
	for _, pods := range []string{"data/podrun/pods", "run/podrun/pods"} {
		filepath.WalkDir(filepath.Join(p.home, pods), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				t.Errorf("a file is left: %s", path)
			}
			return nil
		})
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), p.home) {
		t.Errorf("a mount is left:\n%s", mounts)
	}
}
