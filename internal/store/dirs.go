// Package store defines where podrun stores its state: paths, locks and durable writes. Packages
// with files of their own (runner/handoff, runner/sandbox, image/*) join names to its directories. C code has
// the file names of internal/protocol and the path of libexec.
//
// A pod has two directories. The one under Data is on disk and is written only when something must
// outlive a reboot. The one under Runtime is on tmpfs, so that an idle pod writes nothing to flash.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/report"
)

// Dirs are the two root directories of podrun's state.
type Dirs struct {
	Data    string // ~/.local/share/podrun, or /var/lib/podrun for root
	Runtime string // $XDG_RUNTIME_DIR/podrun, or /run/podrun for root; see bootRuntime

	ofCluster bool // the objects and claims are the cluster's: see OfCluster
}

// OfCluster returns the same directories with the objects of the Kubernetes cluster whose node this host is, instead of
// the user's: objects of both may have the same names. Namespaces and NetworkPolicies stay the user's: they restrict
// the pods of the cluster, too.
func (d Dirs) OfCluster() Dirs {
	d.ofCluster = true
	return d
}

// ofUser returns the same directories with the user's objects.
func (d Dirs) ofUser() Dirs {
	d.ofCluster = false
	return d
}

// objectsIn returns the directory of the user's or the cluster's objects below one of the two roots.
func (d Dirs) objectsIn(root string) string {
	if d.ofCluster {
		return filepath.Join(root, "cluster")
	}
	return root
}

// UserDirs finds the root directories of the calling user by the XDG rules and creates them, 0700.
// getenv is os.Getenv.
func UserDirs(getenv func(string) string) (Dirs, error) {
	d, err := FindUserDirs(getenv)
	if err != nil {
		return Dirs{}, err
	}
	inData := filepath.Dir(d.Runtime) == runRoot(d.Data)
	first := inData && !isDir(d.Runtime)
	for _, dir := range []string{d.Data, d.Runtime} {
		if err := makePrivate(dir); err != nil {
			return Dirs{}, err
		}
	}
	if first {
		d.removeOtherBoots()
	}
	// libcontainer refuses a root file system behind a link, as the home directories of some systems are.
	if d.Data, err = filepath.EvalSymlinks(d.Data); err != nil {
		return Dirs{}, fmt.Errorf("find the data directory: %w", err)
	}
	if inData {
		d.Runtime = filepath.Join(runRoot(d.Data), filepath.Base(d.Runtime))
	}
	return d, nil
}

// FindUserDirs is UserDirs without access to the file system: the directories need not exist.
func FindUserDirs(getenv func(string) string) (Dirs, error) {
	d, err := dirsOf(os.Getuid(), getenv)
	if err != nil {
		return Dirs{}, err
	}
	for _, dir := range []string{d.Data, d.Runtime} {
		if !filepath.IsAbs(dir) {
			return Dirs{}, report.New(report.Usage, "XDG_DATA_HOME and XDG_RUNTIME_DIR must be absolute paths", "find podrun's directories: %q is not absolute", dir)
		}
	}
	return d, nil
}

// RootData is the data directory of root.
const RootData = "/var/lib/podrun"

// ClusterLabel is the label of the pod and of the claims of a cluster of podrun cluster: its name.
const ClusterLabel = "podrun.dev/cluster"

// FileClusterPod is the name of the manifest of a cluster's pod, in its ClusterDir.
const FileClusterPod = "pod.yaml"

// ClusterDir returns the directory of the files of a cluster of podrun cluster.
func (d Dirs) ClusterDir(name string) string { return filepath.Join(d.Data, "clusters", name) }

func dirsOf(uid int, getenv func(string) string) (Dirs, error) {
	if uid == 0 {
		return Dirs{Data: RootData, Runtime: "/run/podrun"}, nil
	}
	data := getenv("XDG_DATA_HOME")
	if data == "" {
		home := getenv("HOME")
		if home == "" {
			return Dirs{}, report.New(report.Usage, "set HOME or XDG_DATA_HOME", "find the data directory: neither HOME nor XDG_DATA_HOME is set")
		}
		data = filepath.Join(home, ".local", "share")
	}
	d := Dirs{Data: filepath.Join(data, "podrun")}
	run := getenv("XDG_RUNTIME_DIR")
	if run == "" { // no login session: su, cron, ssh without PAM
		if run = "/run/user/" + strconv.Itoa(uid); !isDir(run) {
			d.Runtime = bootRuntime(d.Data)
			return d, nil
		}
	}
	d.Runtime = filepath.Join(run, "podrun")
	return d, nil
}

// bootRuntime returns a runtime directory in the data directory, for hosts without a better one. In /tmp, /var/tmp and
// /dev/shm a rule of tmpfiles, or the end of a login session, would delete it under running pods. Its name has the
// boot, because this directory outlives one.
func bootRuntime(data string) string {
	return filepath.Join(runRoot(data), cmp.Or(BootID(), "boot"))
}

func runRoot(data string) string { return filepath.Join(data, "run") }

// ofOtherBoot reports whether a path is in the bootRuntime of an earlier boot.
func (d Dirs) ofOtherBoot(path string) bool {
	under := func(dir string) bool { return strings.HasPrefix(path, dir+"/") }
	return under(runRoot(d.Data)) && !under(bootRuntime(d.Data))
}

// removeOtherBoots removes the runtime directories of earlier boots, as far as it can: some files may belong to
// subordinate ids.
func (d Dirs) removeOtherBoots() {
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(d.Runtime), "*"))
	for _, dir := range all {
		if dir != d.Runtime {
			_ = os.RemoveAll(dir)
		}
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

const ownDirs = "set XDG_DATA_HOME and XDG_RUNTIME_DIR to directories you can write to"

// makePrivate creates dir if it is missing, and refuses one that others could write to: in /tmp any
// user may have created it first. It creates nothing in a directory that is not trusted.
func makePrivate(dir string) error {
	err := Trusted(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeIn(dir); err != nil {
		return err
	}
	return Trusted(dir)
}

// makeIn creates a directory with its parents. It checks each parent before it creates a child.
func makeIn(dir string) error {
	above := filepath.Dir(dir)
	_, err := os.Lstat(above)
	if errors.Is(err, fs.ErrNotExist) && above != dir {
		err = makeIn(above)
	}
	if err == nil {
		err = trustedAbove(above)
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // a later check finds its owner
		return report.New(report.Failure, ownDirs, "make podrun's directory: %w", err)
	}
	return nil
}

// Trusted refuses a missing directory and one that other users own, could write to or could
// replace. The directory above it may be a link, and may be world-writable if only owners can
// remove entries there (/tmp).
func Trusted(dir string) error {
	if err := trustedAbove(filepath.Dir(dir)); err != nil {
		return err
	}
	return trusted(dir, unix.Lstat, func(st *unix.Stat_t) bool { return writable(st, true) })
}

// trustedAbove refuses a directory in which others could create or replace podrun's own.
func trustedAbove(dir string) error {
	if err := trusted(dir, unix.Lstat, func(*unix.Stat_t) bool { return false }); err != nil { // the mode may be a link's
		return err
	}
	return trusted(dir, unix.Stat, func(st *unix.Stat_t) bool { return writable(st, false) })
}

func trusted(path string, stat func(string, *unix.Stat_t) error, open func(*unix.Stat_t) bool) error {
	var st unix.Stat_t
	if err := stat(path, &st); err != nil {
		return report.New(report.Failure, ownDirs, "look at %s: %w", path, err)
	}
	if st.Uid != uint32(os.Geteuid()) && st.Uid != 0 || open(&st) {
		return report.New(report.Failure, "chmod go-w or remove it, or set XDG_RUNTIME_DIR and XDG_DATA_HOME to directories of your own", "%s can be written by another user", path)
	}
	return nil
}

// writable reports whether others could create and replace entries of a directory. In the directory
// above podrun's own they may if it is sticky. The user's own group may in any case.
func writable(st *unix.Stat_t, mine bool) bool {
	if mine {
		return st.Mode&0o022 != 0
	}
	group := st.Mode&0o020 != 0 && st.Gid != uint32(os.Getegid()) && st.Gid != 0
	return st.Mode&unix.S_ISVTX == 0 && (group || st.Mode&0o002 != 0)
}

// SeccompDir returns the directory of the user's seccomp profiles.
func (d Dirs) SeccompDir() string { return filepath.Join(d.Data, "seccomp") }

// ImagesDir returns the directory of the image store.
func (d Dirs) ImagesDir() string { return filepath.Join(d.Data, "images") }

// OverlayMark returns a file that exists once overlayfs has been tried on the file system of Data
// since boot.
func (d Dirs) OverlayMark() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(d.Data, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", d.Data, err)
	}
	return filepath.Join(d.Runtime, fmt.Sprintf("overlay-%x", st.Dev)), nil
}

// MountPointsDir returns the directory of the layers of mount points (volumes.MountPointsLayer).
func (d Dirs) MountPointsDir() string { return filepath.Join(d.Data, "mountpoints") }

// LibexecDir returns the directory of the unpacked programs.
func (d Dirs) LibexecDir() string { return filepath.Join(d.Data, "libexec") }

// LibexecLock returns the lock that processes share while they may execute a program in LibexecDir,
// and hold exclusively to remove one.
func (d Dirs) LibexecLock() string { return filepath.Join(d.LibexecDir(), ".lock") }

// LockSharedResources takes, exclusively, the lock under which a process creates or changes what the pods
// of a user share: the user namespace, the router, the leases. The lock is on disk, where all of
// the user's pods find it, and is never written to.
func (d Dirs) LockSharedResources() (*FileLock, error) {
	return LockExclusive(filepath.Join(d.Data, "share.lock"))
}

// CheckWritable returns an error if the disk of the data directory can only be read.
func (d Dirs) CheckWritable() error {
	if err := rawsys.TryWrite(d.Data); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EIO) {
		return fmt.Errorf("%s cannot be written to: %w", d.Data, err)
	}
	return nil
}
