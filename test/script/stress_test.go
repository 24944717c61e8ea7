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

	"github.com/podrun/podrun/internal/scriptcmd"
)

const (
	stressPods    = 8
	stressClients = 32
	stressTime    = 8 * time.Second
	// stressEnv sets how long the stress lasts in torture, as "1m".
	stressEnv = "PODRUN_STORM"
	// hangTimeout limits one command beside 31 others on a slow machine.
	hangTimeout = 4 * time.Minute
)

const stressPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {storm: "yes"}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: busybox, imagePullPolicy: Never, command: [sh, -c, 'trap "exit 0" TERM; while :; do echo tick; sleep 1 & wait; done']}
`

// TestManyClients: clients send random commands to a few pods at once, one is killed each second,
// and none hangs. Afterwards each pod can be started, used and removed: no lock is stale, nothing
// is left.
func TestManyClients(t *testing.T) {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	s := &stress{T: t, host: h, living: map[*exec.Cmd]bool{}}
	for i := range stressPods {
		text := strings.ReplaceAll(stressPod, "NAME", stressName(i))
		if err := os.WriteFile(s.file(i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lasts := stressTime
	if d, err := time.ParseDuration(os.Getenv(stressEnv)); err == nil {
		lasts = d
	}
	s.run(lasts)
	if t.Failed() {
		return
	}
	for i := range stressPods {
		s.must("up", "-d", "--wait", s.file(i))
		s.must("exec", stressName(i), "--", "true")
	}
	if out := s.must("ps"); strings.Count(out, "1/1") != stressPods {
		t.Errorf("pods are lost:\n%s", out)
	}
	for i := range stressPods {
		s.must("down", stressName(i))
	}
	var found []string
	if !scriptcmd.Poll(func() bool { found = h.left(); return len(found) == 0 }) {
		t.Errorf("left behind:\n%s", strings.Join(found, "\n"))
	}
	t.Logf("%d commands, of which %d were killed", s.done.Load(), s.killed.Load())
}

// stress runs the clients and kills them.
type stress struct {
	*testing.T
	host *host

	mu     sync.Mutex
	living map[*exec.Cmd]bool

	done, killed atomic.Int64
}

func stressName(i int) string          { return fmt.Sprintf("storm-%d", i) }
func (s *stress) file(i int) string    { return filepath.Join(s.host.dir, stressName(i)+".yaml") }
func (s *stress) path(n string) string { return filepath.Join(s.host.dir, n) }

// must runs a command that has to succeed.
func (s *stress) must(args ...string) string {
	s.Helper()
	out, err := s.client(args)
	if err != nil {
		s.Errorf("podrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// run lets the clients run random commands for a time, and waits for the last of them.
func (s *stress) run(lasts time.Duration) {
	ctx, cancel := context.WithTimeout(s.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	for range stressClients {
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

// verb returns a random command.
func (s *stress) verb() []string {
	i := rand.IntN(stressPods)
	name := stressName(i)
	all := [][]string{
		{"ps"}, {"ps", "-o", "wide"}, {"get", "pod", name, "-o", "yaml"}, {"describe", name}, {"logs", name, "--tail", "5"}, {"events", name},
		{"logs", "-l", "storm=yes", "--ignore-errors"}, {"top", name}, {"port", name}, {"diff", s.file(i)}, {"up", "--dry-run", s.file(i)},
		{"exec", name, "--", "true"}, {"exec", name, "--", "sh", "-c", "echo $$"}, {"cp", name + ":/etc/hosts", s.path("copy-" + name)}, {"wait", "--for=condition=Ready", "--timeout=1s", name},
		{"up", "-d", s.file(i)}, {"up", "-d", "--wait", s.file(i)}, {"up", "-d", s.file(i)}, {"apply", "-f", s.file(i)}, {"start", name},
		{"restart", name}, {"kill", name}, {"kill", "-s", "TERM", name}, {"stop", name}, {"stop", name, "--force"}, {"down", name}, {"down", name, "--force"},
	}
	return all[rand.IntN(len(all))]
}

// client runs a command. It reports a command that hangs, with its state.
func (s *stress) client(args []string) (string, error) {
	cmd := s.host.podrun(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = hangTimeout
	if err := cmd.Start(); err != nil {
		return "", err
	}
	s.mu.Lock()
	s.living[cmd] = true
	s.mu.Unlock()
	hung := time.AfterFunc(hangTimeout, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	if !hung.Stop() {
		s.Errorf("podrun %s hangs:\n%s", strings.Join(args, " "), out.String())
	}
	s.mu.Lock()
	delete(s.living, cmd)
	s.mu.Unlock()
	return out.String(), err
}

// kill kills a random one of the active clients.
func (s *stress) kill() {
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
