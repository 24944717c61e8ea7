package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testwords"
)

const (
	stormPods    = 8
	stormClients = 32
	stormTime    = 8 * time.Second
	// stormEnv is how long the storm lasts in torture, as "1m".
	stormEnv = "PODRUN_STORM"
	// hangTime is how long one command may take beside 31 others, on a machine that is slow.
	hangTime = 4 * time.Minute
)

const stormPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {storm: "yes"}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: busybox, imagePullPolicy: Never, command: [sh, -c, 'trap "exit 0" TERM; while :; do echo tick; sleep 1 & wait; done']}
`

// TestManyClients: of clients that do random things to a few pods at once, while one is
// killed each second, none hangs; and after the storm each pod can be brought up, used and
// removed as ever: no lock is stale, nothing is left.
func TestManyClients(t *testing.T) {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	s := &storm{T: t, host: h, living: map[*exec.Cmd]bool{}}
	for i := range stormPods {
		text := strings.ReplaceAll(stormPod, "NAME", stormName(i))
		if err := os.WriteFile(s.file(i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lasts := stormTime
	if d, err := time.ParseDuration(os.Getenv(stormEnv)); err == nil {
		lasts = d
	}
	s.rage(lasts)
	if t.Failed() {
		return
	}
	for i := range stormPods {
		s.must("up", "-d", "--wait", s.file(i))
		s.must("exec", stormName(i), "--", "true")
	}
	if out := s.must("ps"); strings.Count(out, "1/1") != stormPods {
		t.Errorf("pods are lost:\n%s", out)
	}
	for i := range stormPods {
		s.must("down", stormName(i))
	}
	var found []string
	if !testwords.Within(func() bool { found = h.left(); return len(found) == 0 }) {
		t.Errorf("left behind:\n%s", strings.Join(found, "\n"))
	}
	t.Logf("%d commands, of which %d were killed", s.done.Load(), s.killed.Load())
}

// storm is the clients, and who kills them.
type storm struct {
	*testing.T
	host *host

	mu     sync.Mutex
	living map[*exec.Cmd]bool

	done, killed atomic.Int64
}

func stormName(i int) string          { return fmt.Sprintf("storm-%d", i) }
func (s *storm) file(i int) string    { return filepath.Join(s.host.dir, stormName(i)+".yaml") }
func (s *storm) path(n string) string { return filepath.Join(s.host.dir, n) }

// must runs a command that has to succeed.
func (s *storm) must(args ...string) string {
	s.Helper()
	out, err := s.client(args)
	if err != nil {
		s.Errorf("podrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// rage lets the clients do random things for a time, and waits for the last of them.
func (s *storm) rage(lasts time.Duration) {
	ctx, cancel := context.WithTimeout(s.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	for range stormClients {
		all.Go(func() {
			for ctx.Err() == nil {
				args := s.verb()
				out, err := s.client(args)
				if s.done.Add(1); strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
					s.Errorf("podrun %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
		})
	}
	all.Go(func() {
		for each := time.NewTicker(time.Second); ; {
			select {
			case <-each.C:
				s.kill()
			case <-ctx.Done():
				each.Stop()
				return
			}
		}
	})
	all.Wait()
}

// verb is what a client does next.
func (s *storm) verb() []string {
	i := rand.IntN(stormPods)
	name := stormName(i)
	all := [][]string{
		{"ps"}, {"ps", "-o", "wide"}, {"get", "pod", name, "-o", "yaml"}, {"describe", name}, {"logs", name, "--tail", "5"}, {"events", name},
		{"logs", "-l", "storm=yes", "--ignore-errors"}, {"top", name}, {"port", name}, {"diff", s.file(i)}, {"up", "--dry-run", s.file(i)},
		{"exec", name, "--", "true"}, {"exec", name, "--", "sh", "-c", "echo $$"}, {"cp", name + ":/etc/hosts", s.path("copy-" + name)}, {"wait", "--for=condition=Ready", "--timeout=1s", name},
		{"up", "-d", s.file(i)}, {"up", "-d", "--wait", s.file(i)}, {"up", "-d", s.file(i)}, {"apply", "-f", s.file(i)}, {"start", name},
		{"restart", name}, {"kill", name}, {"kill", "-s", "TERM", name}, {"stop", name}, {"stop", name, "--force"}, {"down", name}, {"down", name, "--force"},
	}
	return all[rand.IntN(len(all))]
}

// client runs a command. One that does not end is told of, with what it is at.
func (s *storm) client(args []string) (string, error) {
	cmd := s.host.podrun(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = hangTime
	if err := cmd.Start(); err != nil {
		return "", err
	}
	s.mu.Lock()
	s.living[cmd] = true
	s.mu.Unlock()
	hung := time.AfterFunc(hangTime, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	if !hung.Stop() {
		s.Errorf("podrun %s hangs:\n%s", strings.Join(args, " "), out.String())
	}
	s.mu.Lock()
	delete(s.living, cmd)
	s.mu.Unlock()
	return out.String(), err
}

// kill kills one of the clients that are at work, whichever.
func (s *storm) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cmd := range s.living {
		if err := cmd.Process.Kill(); err == nil {
			s.killed.Add(1)
		} else if !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, fs.ErrNotExist) {
			s.Error(err)
		}
		return
	}
}
