package podinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// RemovePod removes what a dead pod has left: its files, including files of subordinate ids, its
// cgroup and its directories. The caller holds the pod's lock.
func RemovePod(program string, d store.Dirs, p store.Pod) error {
	if p.CanRemoveDirectly() {
		return p.Remove()
	}
	cmd := reexec.Command(reexec.Spec{Program: program, Name: protocol.EntryRemoveFiles, Args: reexec.PodArgs(d, p), Userns: true})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove files of pod %s: %w: %s", p.Name, err, strings.TrimSpace(string(out)))
	}
	return p.Remove()
}

// RemoveVolume removes the directory of a claim or of a PersistentVolume with its files of subordinate ids. No pod may
// use it. A missing directory is no error.
func RemoveVolume(program, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := reexec.Command(reexec.Spec{Program: program, Name: protocol.EntryRemoveVolume, Args: []string{dir}, Userns: true})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove volume %s: %w: %s", filepath.Base(dir), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// IsMonitor reports whether a process is the monitor of a pod.
func IsMonitor(pid int, p store.Pod) bool {
	st, ok := procfs.Lookup(pid)
	return ok && st.Comm == protocol.CommMonitor && IsPodProcess(procfs.Args(pid), p)
}

// IsPodProcess reports whether a process with these arguments is a monitor, pod init or supervisor
// of the pod.
func IsPodProcess(args []string, p store.Pod) bool {
	return len(args) == 6 && args[1] == protocol.EntrySupervisor && args[4] == p.Namespace && args[5] == p.Name &&
		store.Dirs{Data: args[2], Runtime: args[3]}.Pod(p.Namespace, p.Name).DataDir() == p.DataDir()
}
