package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
)

// pastaProgram is of the package passt.
const pastaProgram = "pasta"

// pastaSteady is how long a pasta must have run to be started again when it ends.
const pastaSteady = 10 * time.Second

// pastaPatience is for how long a pasta is waited for, which takes milliseconds.
const pastaPatience = 30 * time.Second

// pastaFiles are the pod's network as pasta may open it, which drops the privileges that
// looking into another process takes, and the file in which it writes its number.
func (s *sandbox) pastaFiles() (netFile, pidFile string) {
	return filepath.Join(s.store.RuntimeDir(), "pasta.net"), filepath.Join(s.store.RuntimeDir(), "pasta.pid")
}

// startPasta has the program carry the pod's traffic. It outlives this process, as the
// keeper's child.
func (s *sandbox) startPasta() error {
	program, err := exec.LookPath(pastaProgram)
	if err != nil {
		return report.New(report.Failure, "as root: apt-get install passt; or another network: podrun up --network", "the program %s, which is to carry the pod's traffic, is not installed", pastaProgram)
	}
	netFile, pidFile := s.pastaFiles()
	_ = unix.Unmount(netFile, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // a supervisor may have been killed just here
	if err := os.WriteFile(netFile, nil, 0o600); err != nil {
		return fmt.Errorf("start %s: %w", pastaProgram, err)
	}
	if err := unix.Mount(s.net, netFile, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("start %s: show it the pod's network: %w", pastaProgram, err)
	}
	defer unix.Unmount(netFile, unix.MNT_DETACH)
	said, err := runPasta(program, pastaPatience, "--config-net", "--netns-only", "--netns", netFile, "--no-netns-quit", "--quiet", "--runas", "0",
		"-t", "none", "-u", "none", "-T", "none", "-U", "none", "--no-map-gw", "-P", pidFile) // ports are podrun's own; the host's loopback is the host's
	if err != nil {
		return err
	}
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return fmt.Errorf("start %s: %w", pastaProgram, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("start %s: %w", pastaProgram, err)
	}
	st, ok := stat(pid)
	if !ok {
		return fmt.Errorf("start %s: it has ended at once: %s", pastaProgram, inWords(said))
	}
	s.watchPasta(st.process)
	return nil
}

// runPasta waits until the program goes on in the background, and gives what it has said.
func runPasta(program string, patience time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = patience // for who may have its output
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", report.New(report.Failure, "another network: podrun up --network", "start %s: it has not connected the pod's network in %v: %s", pastaProgram, patience, inWords(said.String()))
	}
	if err != nil {
		return "", fmt.Errorf("start %s: %w: %s", pastaProgram, err, inWords(said.String()))
	}
	return said.String(), nil
}

// inWords is what pasta says about the pod's network, in one line.
func inWords(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "syslog") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// watchPasta waits for the end of a pasta that runs: another one is begun, and the user is
// told.
func (s *sandbox) watchPasta(p process) {
	s.estate.ends.adopt(p)
	s.estate.record(func(left *state) { left.Pasta = p })
	begun := time.Now()
	go func() {
		if _, err := s.estate.ends.wait(p); err != nil {
			return
		}
		s.estate.ends.forget(p)
		s.carrying.Lock()
		defer s.carrying.Unlock()
		if s.disconnected {
			return
		}
		err := errors.New("it ended soon after its start")
		if time.Since(begun) > pastaSteady {
			err = s.startPasta()
		}
		if err != nil {
			s.warn("pasta has ended, and the pod has no network but its own loopback: " + err.Error())
			return
		}
		s.warn("pasta has ended, and was started again: the pod's connections are lost")
	}()
}

// endPasta ends it, if there is one.
func (s *sandbox) endPasta() error {
	s.carrying.Lock()
	defer s.carrying.Unlock()
	s.disconnected = true
	p := s.estate.pasta()
	if p.PID == 0 {
		return nil
	}
	s.estate.record(func(left *state) { left.Pasta = process{} })
	if err := p.kill(unix.SIGKILL); err != nil && err != unix.ESRCH {
		return fmt.Errorf("end %s: %w", pastaProgram, err)
	}
	return nil
}

// pasta is the one on record.
func (e *estate) pasta() process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Pasta
}
