package programs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// keepUnused is how long a version's programs stay although no process runs them: two versions in
// alternating use do not unpack theirs each time.
const keepUnused = 24 * time.Hour

// The prefixes of the names of the programs that are looked up.
const (
	supervisorPrefix = "podrun-supervisor-"
	podPrefix        = "podrun-pod-"
	imagePrefix      = "podrun-image-"
)

// prefixes begin the names of the programs. podrun-init- is libcontainer's init, and podrun-quick- the fast path, of former
// versions.
var prefixes = []string{podPrefix, supervisorPrefix, "podrun-netstack-", "podrun-fastpath-", imagePrefix, "podrun-init-", "podrun-quick-"}

// inUse takes the shared lock of processes that may execute programs. It returns nil if the lock is
// unavailable, for example on a full disk, where stopping pods must still work; then nothing is
// removed.
func inUse(path string) *store.FileLock {
	lock, err := store.LockShared(path)
	if err != nil {
		return nil
	}
	return lock
}

// removeUnused removes programs that other versions unpacked more than keepUnused ago. It removes
// none while a process runs any of them, because that process may start the others, and none while
// another command holds the lock: that command may be about to execute one, or start a pod only
// later.
//
// The next command removes what stays now.
func removeUnused(libexec string, current []string, lock *store.FileLock, now time.Time) error {
	entries, err := os.ReadDir(libexec)
	if err != nil {
		return err
	}
	var old []string
	for _, e := range entries {
		path := filepath.Join(libexec, e.Name())
		of := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Name(), p) })
		if info, err := e.Info(); of && err == nil && info.Mode().IsRegular() && !slices.Contains(current, path) {
			if now.Sub(info.ModTime()) < keepUnused {
				return nil
			}
			old = append(old, path)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if alone, err := lock.TryExclusive(); !alone || err != nil {
		return err
	}
	if !anyRuns(old) {
		for _, path := range old {
			if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
	}
	return errors.Join(err, lock.Shared())
}

// anyRuns reports whether a process runs one of the programs. In doubt it returns true.
func anyRuns(programs []string) bool {
	var files []fs.FileInfo
	for _, path := range programs {
		info, err := os.Stat(path)
		if err != nil {
			return true
		}
		files = append(files, info)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil || len(processes) == 0 {
		return true
	}
	for _, exe := range processes {
		// Other users' processes are invisible, and run no program of this directory.
		if info, err := os.Stat(exe); err == nil && slices.ContainsFunc(files, func(f fs.FileInfo) bool { return os.SameFile(f, info) }) {
			return true
		}
	}
	return false
}
