package host

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
)

// data checks the directory of images, volumes and logs: pods are started from a program in it.
func (v prober) data() Finding {
	f, here := v.usable(v.Data, "XDG_DATA_HOME")
	if here == nil {
		return f
	}
	elsewhere := "set XDG_DATA_HOME to a directory on a local ext4, xfs or btrfs"
	switch {
	case here.NoExec:
		where := mountOf(v.root + nearest(v, v.Data))
		return failureFinding(fmt.Sprintf("%s is on a file system mounted noexec: its programs cannot be executed", v.Data), "as root: mount -o remount,bind,exec "+shellQuote(where)+", or "+elsewhere)
	case here.Remote:
		return warningFinding(fmt.Sprintf("%s is on %s, which may not support root file systems, and hangs if its server is unreachable", v.Data, here.Kind), elsewhere)
	case here.Memory:
		return noteFinding(fmt.Sprintf("%s is on %s: images, volumes and logs are gone after a restart", v.Data, here.Kind), elsewhere)
	}
	return okFinding(v.Data + " on " + here.Kind)
}

// runtime checks the directory of sockets, locks and statuses.
func (v prober) runtime() Finding {
	f, here := v.usable(v.Runtime, "XDG_RUNTIME_DIR")
	if here == nil {
		return f
	}
	switch {
	case v.RuntimeDefault && !here.Memory && v.uid != 0:
		return noteFinding(fmt.Sprintf("XDG_RUNTIME_DIR is not set: %s is used, on %s, which is written to with every change of a pod", v.Runtime, here.Kind), v.loginHint())
	case here.Remote:
		return warningFinding(fmt.Sprintf("%s is on %s: locks and sockets may not work there", v.Runtime, here.Kind), v.loginHint())
	case !here.Memory:
		return noteFinding(fmt.Sprintf("%s is on %s, which is written to with every change of a pod", v.Runtime, here.Kind), v.memoryHint())
	case v.RuntimeDefault && v.uid != 0:
		return okFinding(v.Runtime + " on " + here.Kind + ", though XDG_RUNTIME_DIR is not set")
	}
	return okFinding(v.Runtime + " on " + here.Kind)
}

// usable checks a directory of podrun, or the nearest existing one above it. If here is nil, f
// describes why the directory is unusable.
func (v prober) usable(dir, variable string) (f Finding, here *FileSystem) {
	if v.DirsErr != nil {
		return failureFinding(v.DirsErr.Error(), report.Hint(v.DirsErr)), nil
	}
	there := nearest(v, dir)
	fs, err := v.statfs(v.root + there)
	if err != nil {
		return failureFinding(err.Error(), v.dirHint(dir, variable)), nil
	}
	if fs.RO {
		return failureFinding(fmt.Sprintf("%s is on a file system mounted read-only", dir), "set "+variable+" to a directory that can be written to, or as root: mount -o remount,rw "+shellQuote(mountOf(v.root+there))+"; if that fails, dmesg shows what is wrong with the disk"), nil
	}
	err = v.writable(v.root + there)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EIO) {
		return failureFinding(fmt.Sprintf("%s cannot be written to: %v: the kernel has stopped writing to the disk after an error", dir, err), "dmesg shows the error; replace a worn disk or SD card, or set "+variable+" to a directory on another one"), nil
	}
	if err != nil {
		return failureFinding(fmt.Sprintf("%s cannot be created or written to: %s: %v", dir, there, err), v.dirHint(dir, variable)), nil
	}
	if there == dir && v.Trusted != nil {
		if err := v.Trusted(v.root + dir); err != nil {
			return failureFinding(err.Error(), report.Hint(err)), nil
		}
	}
	return Finding{}, &fs
}

// nearest returns dir or the lowest existing directory above it.
func nearest(v prober, dir string) string {
	for dir != "/" && !v.exists(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

func (v prober) dirHint(dir, variable string) string {
	if variable == "XDG_RUNTIME_DIR" && v.uid != 0 {
		return v.loginHint()
	}
	if v.uid == 0 {
		return "make sure that root can write to " + filepath.Dir(dir)
	}
	return "set " + variable + " to a directory of your own, or as root: chown " + v.name() + " " + nearest(v, dir)
}

// loginHint describes how a user gets its runtime directory.
func (v prober) loginHint() string {
	switch {
	case !v.systemd():
		return v.memoryHint()
	case v.exists(v.ownRuntime()):
		return "export XDG_RUNTIME_DIR=" + v.ownRuntime()
	}
	return fmt.Sprintf("log in as %s with ssh or `machinectl shell %[1]s@` instead of su, or as root: loginctl enable-linger %[1]s; then export XDG_RUNTIME_DIR=%s", v.name(), v.ownRuntime())
}

// memoryHint describes how to get a runtime directory in memory.
func (v prober) memoryHint() string {
	switch {
	case v.uid == 0:
		return "mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs /run, as most distributions do"
	case v.systemd():
		return "export XDG_RUNTIME_DIR=" + v.ownRuntime()
	}
	return fmt.Sprintf("mkdir -m 0700 /dev/shm/run-%d; export XDG_RUNTIME_DIR=/dev/shm/run-%[1]d", v.uid)
}

func (v prober) ownRuntime() string { return fmt.Sprintf("/run/user/%d", v.uid) }
