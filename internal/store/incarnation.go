package store

import (
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
)

// Incarnation identifies the processes of a pod between a start and the end of the last one. A pod that is started
// again, and another pod of the same name, have another. A killed pod init changes nothing: the monitor starts the next.
type Incarnation struct {
	file    uint64         // the lock file, which a removal deletes; 0: there is none
	monitor procfs.Process // as recorded in it; zero: the pod init has recorded nothing yet
}

// Incarnation returns the current incarnation or, after its end, the latest.
func (p Pod) Incarnation() Incarnation {
	path, err := p.heldLock()
	if path == "" || err != nil {
		path = p.lockFile()
	}
	return p.readIncarnation(path)
}

func (p Pod) readIncarnation(path string) Incarnation {
	h, _ := readHolder(path)
	return Incarnation{file: identity(p.lockFile()), monitor: h.monitor}
}

// identity returns a number of a file that no later file of that name has: its inode and the time of its birth, since
// a disk uses an inode again. It is 0 if there is no file.
func identity(path string) uint64 {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st) != nil {
		return 0
	}
	return st.Ino ^ uint64(st.Btime.Sec)*1e9 ^ uint64(st.Btime.Nsec)<<32
}

// Lives reports whether a process of an incarnation holds the pod. A command that has locked the pod since then, to
// start it or to remove it, is none: it has cleared the record.
func (p Pod) Lives(i Incarnation) bool {
	path, err := p.heldLock()
	if path == "" || err != nil {
		return false
	}
	now := p.readIncarnation(path)
	return now.file == i.file && (i.monitor == procfs.Process{} || now.monitor == i.monitor)
}

// Succeeded reports whether the pod has been started again after an incarnation, or another pod of its name exists. A
// cleared record does not count: another command may be removing the pod.
func (p Pod) Succeeded(i Incarnation) bool {
	now := p.Incarnation()
	none := procfs.Process{}
	return now.file != i.file || now.monitor != i.monitor && now.monitor != none && i.monitor != none
}
