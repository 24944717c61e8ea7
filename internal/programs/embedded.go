//go:build embedprograms

package programs

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// The programs, and the SHA-256 and the size of each, so that no start has to compute them. The others are
// compressed as differences from the supervisor, which contains much of their code: that halves them.
var (
	//go:embed supervisor.zst
	supervisor []byte
	//go:embed supervisor.sum
	supervisorSum string

	//go:embed pod.zst
	pod []byte
	//go:embed pod.sum
	podSum string

	//go:embed netstack.zst
	netstack []byte
	//go:embed netstack.sum
	netstackSum string

	//go:embed image.zst
	image []byte
	//go:embed image.sum
	imageSum string

	//go:embed fastpath.zst
	fastpath []byte
	//go:embed fastpath.sum
	fastpathSum string
)

// Libraries lists the modules and the C libraries of the programs: a name and a version in each line.
//
//go:embed libraries.txt
var Libraries string

// EntryPoints returns nil: the entry points are in programs of their own.
func EntryPoints() map[string]func([]string) int { return nil }

// Programs unpacks the programs once per version. They are on disk, not in a memfd, so that all
// pods of a user share their pages and the pages of an idle pod can be reclaimed.
func Programs(dirs store.Dirs) (p podinit.Programs, err error) {
	if err := os.MkdirAll(dirs.LibexecDir(), 0o700); err != nil {
		return p, fmt.Errorf("unpack podrun's programs: %w", err)
	}
	p.InUse = inUse(dirs.LibexecLock())
	base := sync.OnceValues(supervisorProgram)
	if p.Supervisor, err = unpacked(dirs, supervisorPrefix, func(int64) ([]byte, error) { return base() }, supervisorSum); err != nil {
		return p, fmt.Errorf("unpack the supervisor: %w", err)
	}
	if p.Pod, err = unpacked(dirs, podPrefix, fromSupervisor(pod, base), podSum); err != nil {
		return p, fmt.Errorf("unpack the pod program: %w", err)
	}
	if p.Netstack, err = unpacked(dirs, "podrun-netstack-", fromSupervisor(netstack, base), netstackSum); err != nil {
		return p, fmt.Errorf("unpack the network stack: %w", err)
	}
	// internal/reexec/fastpath finds it there by this name.
	fastpathPath, err := unpacked(dirs, "podrun-fastpath-", fromSupervisor(fastpath, base), fastpathSum)
	if err != nil {
		return p, fmt.Errorf("unpack the fast path: %w", err)
	}
	images, _, _, err := find(dirs, imagePrefix, imageSum) // unpacked when it is needed
	if err != nil {
		return p, fmt.Errorf("find the image program: %w", err)
	}
	if p.InUse != nil {
		// A failed removal does not prevent a pod.
		_ = removeUnused(dirs.LibexecDir(), []string{p.Pod, p.Supervisor, p.Netstack, fastpathPath, images}, p.InUse, time.Now())
	}
	return p, nil
}

// Image unpacks the image program once per version. It is not removed before started is called.
func Image(dirs store.Dirs) (path string, started func(), err error) {
	return unpackedAlone(dirs, imagePrefix, image, imageSum)
}

// PodProgram unpacks the pod program once per version. It is not removed before executed is called.
func PodProgram(dirs store.Dirs) (path string, executed func(), err error) {
	return unpackedAlone(dirs, podPrefix, pod, podSum)
}

func unpackedAlone(dirs store.Dirs, prefix string, packed []byte, sumAndSize string) (path string, done func(), err error) {
	if err := os.MkdirAll(dirs.LibexecDir(), 0o700); err != nil {
		return "", nil, fmt.Errorf("unpack %s: %w", strings.Trim(prefix, "-"), err)
	}
	lock := inUse(dirs.LibexecLock())
	if path, err = unpacked(dirs, prefix, fromSupervisor(packed, supervisorProgram), sumAndSize); err != nil {
		return "", nil, fmt.Errorf("unpack %s: %w", strings.Trim(prefix, "-"), err)
	}
	return path, func() {
		if lock != nil {
			lock.Close()
		}
	}, nil
}

// ImageInMemory is Image without a change of podrun's directories: for a diagnosis.
func ImageInMemory(dirs store.Dirs) (path string, started func(), err error) {
	path, size, ok, err := find(dirs, imagePrefix, imageSum)
	if ok || err != nil {
		return path, func() {}, err
	}
	program, err := fromSupervisor(image, supervisorProgram)(size)
	if err != nil {
		return "", nil, fmt.Errorf("unpack the image program: %w", err)
	}
	fd, err := unix.MemfdCreate("podrun-image", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("unpack the image program into memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "podrun-image")
	if _, err := file.Write(program); err != nil {
		file.Close()
		return "", nil, fmt.Errorf("unpack the image program into memory: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { file.Close() }, nil
}

// FindPodProgram returns the pod program, if it is there.
func FindPodProgram(dirs store.Dirs) (path string, ok bool) {
	path, _, ok, err := find(dirs, podPrefix, podSum)
	return path, ok && err == nil
}

// find returns the path of a program of this version, its size, and whether it is there.
func find(dirs store.Dirs, prefix, sumAndSize string) (path string, size int64, ok bool, err error) {
	sum, bytes, _ := strings.Cut(strings.TrimSpace(sumAndSize), " ")
	if size, err = strconv.ParseInt(bytes, 10, 64); err != nil || len(sum) < 16 {
		return "", 0, false, fmt.Errorf("read the sum %q: %w", sumAndSize, err)
	}
	path = filepath.Join(dirs.LibexecDir(), prefix+sum[:16])
	st, err := os.Stat(path)
	return path, size, err == nil && st.Size() == size, nil
}

// unpacked returns the path of a program and unpacks it if it is missing.
func unpacked(dirs store.Dirs, prefix string, unpack func(size int64) ([]byte, error), sumAndSize string) (string, error) {
	path, size, ok, err := find(dirs, prefix, sumAndSize)
	if ok || err != nil {
		return path, err
	}
	program, err := unpack(size)
	if err != nil {
		return "", err
	}
	return path, store.WriteExecutable(path, program)
}

// supervisorProgram returns the supervisor program.
func supervisorProgram() ([]byte, error) { return unpack(supervisor, 0) }

// fromSupervisor returns a function that unpacks a program. supervisor returns the supervisor program.
func fromSupervisor(packed []byte, supervisor func() ([]byte, error)) func(size int64) ([]byte, error) {
	return func(size int64) ([]byte, error) {
		base, err := supervisor()
		if err != nil {
			return nil, err
		}
		return unpack(packed, size, zstd.WithDecoderDictRaw(0, base))
	}
}

func unpack(packed []byte, size int64, options ...zstd.DOption) ([]byte, error) {
	d, err := zstd.NewReader(nil, append(options, zstd.WithDecoderConcurrency(1))...)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(packed, make([]byte, 0, size))
}
