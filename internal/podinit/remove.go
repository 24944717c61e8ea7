package podinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// RemovePod removes what a dead pod has left: its files, including those of subordinate ids, its
// cgroup and its directories. The caller holds the pod's lock.
func RemovePod(program string, d store.Dirs, p store.Pod) error {
	if p.OwnsNothing() {
		return p.Remove()
	}
	cmd := reexec.Command(reexec.Spec{Program: program, Name: reexec.RemoveFiles, Args: reexec.PodArgs(d, p), Userns: true})
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove files of pod %s: %w: %s", p.Name, err, strings.TrimSpace(string(said)))
	}
	return p.Remove()
}

// RemoveClaim removes the directory of a claim with its files of subordinate ids. No pod may use
// the claim. A missing directory is no error.
func RemoveClaim(program string, d store.Dirs, namespace, name string) error {
	dir, err := d.ClaimDir(namespace, name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := reexec.Command(reexec.Spec{Program: program, Name: reexec.RemoveVolume, Args: []string{d.Data, d.Runtime, namespace, name}, Userns: true})
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove volume %s: %w: %s", name, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// IsMonitor reports whether a process is the monitor of a pod.
func IsMonitor(pid int, p store.Pod) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || string(comm) != "podrun-monitor\n" {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && IsPodProcess(strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), p)
}

// IsPodProcess reports whether a process with these arguments is a monitor, pod init or supervisor
// of the pod.
func IsPodProcess(args []string, p store.Pod) bool {
	return len(args) == 6 && args[1] == reexec.Supervisor && args[4] == p.Namespace && args[5] == p.Name &&
		store.Dirs{Data: args[2], Runtime: args[3]}.Pod(p.Namespace, p.Name).DataDir() == p.DataDir()
}
