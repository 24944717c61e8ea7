package host

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
)

// on changes the file system of the data or the runtime directory.
func on(top string, change func(*FileSystem)) func(v *prober, _ map[string]string) {
	return func(v *prober, _ map[string]string) {
		statfs := v.statfs
		v.statfs = func(path string) (FileSystem, error) {
			fs, err := statfs(path)
			if strings.HasPrefix(path, v.root+top) {
				change(&fs)
			}
			return fs, err
		}
	}
}

func TestDirectories(t *testing.T) {
	const data, run = "data directory", "runtime directory"
	closed := func(top string) func(v *prober, _ map[string]string) {
		return func(v *prober, _ map[string]string) {
			v.writable = func(dir string) error {
				if strings.HasPrefix(dir, v.root+top) {
					return unix.EACCES
				}
				return nil
			}
		}
	}
	unset := func(v *prober, f map[string]string) {
		v.Runtime, v.RuntimeDefault = "/home/jo/.local/share/podrun/run/5e2f", true
	}
	for _, tt := range []finding{
		{"noexec", on("/home", func(f *FileSystem) { f.NoExec = true }), data, Failure,
			"/home/dev/.local/share/podrun is on a file system mounted noexec: its programs cannot be executed", "as root: mount -o remount,bind,exec /"},
		{"read-only", on("/home", func(f *FileSystem) { f.RO = true }), data, Failure,
			"/home/dev/.local/share/podrun is on a file system mounted read-only", "set XDG_DATA_HOME to"},
		{"a worn card", func(v *prober, _ map[string]string) {
			v.writable = func(string) error { return unix.EROFS }
		}, data, Failure, "/home/dev/.local/share/podrun cannot be written to: read-only file system: the kernel has stopped writing to the disk after an error", "dmesg shows the error"},
		{"NFS", on("/home", func(f *FileSystem) { f.Kind, f.Remote = "NFS", true }), data, Warning,
			"/home/dev/.local/share/podrun is on NFS, which may not support root file systems, and hangs if its server is unreachable", "set XDG_DATA_HOME to a directory on a local ext4"},
		{"tmpfs", on("/home", func(f *FileSystem) { f.Kind, f.Memory = "tmpfs", true }), data, Note,
			"/home/dev/.local/share/podrun is on tmpfs: images, volumes and logs are gone after a restart", "set XDG_DATA_HOME"},
		{"somebody else's home", closed("/home"), data, Failure,
			"/home/dev/.local/share/podrun cannot be created or written to: /home/dev: permission denied", "as root: chown dev /home/dev"},
		{"one that others can write to", func(v *prober, f map[string]string) {
			f["/home/dev/.local/share/podrun/x"] = ""
			v.Trusted = func(dir string) error {
				return report.New(report.Failure, "remove it", "%s can be written by another user", dir)
			}
		}, data, Failure, "/home/dev/.local/share/podrun can be written by another user", "remove it"},
		{"no home", func(v *prober, _ map[string]string) {
			v.Setup = Setup{DirsErr: report.New(report.Usage, "set HOME", "find the data directory: HOME is not set")}
		}, data, Failure, "find the data directory: HOME is not set", "set HOME"},
		{"gone", func(v *prober, _ map[string]string) {
			statfs := v.statfs
			v.statfs = func(path string) (FileSystem, error) {
				if strings.HasPrefix(path, v.root+"/home") {
					return FileSystem{}, unix.ESTALE
				}
				return statfs(path)
			}
		}, data, Failure, "stale ", "set XDG_DATA_HOME"},
		{"root cannot write to its own", func(v *prober, f map[string]string) {
			v.uid, v.Data = 0, "/var/lib/podrun"
			closed("/var/lib")(v, f)
		}, data, Failure, "/var/lib/podrun cannot be created or written to: /var/lib: permission denied", "make sure that root can write to /var/lib"},

		{"no runtime directory is set, and there is none", func(v *prober, f map[string]string) { unset(v, f); delete(f, "/run/user/1000/systemd/private") }, run, Note,
			"XDG_RUNTIME_DIR is not set: /home/jo/.local/share/podrun/run/5e2f is used, on ext4, which is written to with every change of a pod",
			"log in as dev with ssh or `machinectl shell dev@` instead of su, or as root: loginctl enable-linger dev; then export XDG_RUNTIME_DIR=/run/user/1000"},
		{"no runtime directory is set, but there is one", unset, run, Note,
			"XDG_RUNTIME_DIR is not set: /home/jo/.local/share/podrun/run/5e2f is used, on ext4, which is written to with every change of a pod", "export XDG_RUNTIME_DIR=/run/user/1000"},
		{"no runtime directory is set, without systemd", func(v *prober, f map[string]string) { unset(v, f); delete(f, "/run/systemd/system/x") }, run, Note,
			"XDG_RUNTIME_DIR is not set: /home/jo/.local/share/podrun/run/5e2f is used, on ext4, which is written to with every change of a pod", "mkdir -m 0700 /dev/shm/run-1000; export XDG_RUNTIME_DIR=/dev/shm/run-1000"},
		{"no runtime directory is set, but the home directory is in memory", func(v *prober, f map[string]string) {
			unset(v, f)
			on("/home", func(fs *FileSystem) { fs.Kind, fs.Memory = "tmpfs", true })(v, f)
		}, run, OK, "", ""},
		{"one on a disk", on("/run/user", func(f *FileSystem) { f.Kind, f.Memory = "ext4", false }), run, Note,
			"/run/user/1000/podrun is on ext4, which is written to with every change of a pod", "export XDG_RUNTIME_DIR=/run/user/1000"},
		{"root's on a disk", func(v *prober, f map[string]string) {
			v.uid, v.Runtime, v.RuntimeDefault = 0, "/run/podrun", true
			on("/run", func(f *FileSystem) { f.Kind, f.Memory = "ext4", false })(v, f)
		}, run, Note, "/run/podrun is on ext4, which is written to with every change of a pod", "mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs /run"},
		{"one on NFS", on("/run/user", func(f *FileSystem) { f.Kind, f.Memory, f.Remote = "NFS", false, true }), run, Warning,
			"/run/user/1000/podrun is on NFS: locks and sockets may not work there", "XDG_RUNTIME_DIR"},
		{"root's, after su", func(v *prober, f map[string]string) {
			v.Runtime = "/run/user/0/podrun"
			f["/run/user/0/x"] = ""
			closed("/run/user/0")(v, f)
		}, run, Failure, "/run/user/0/podrun cannot be created or written to: /run/user/0: permission denied", "export XDG_RUNTIME_DIR=/run/user/1000"},

		{"little space", on("/home", func(f *FileSystem) { f.Free = 900 << 20 }), "disk space", Note,
			"900 MiB of 30 GiB are free for /home/dev/.local/share/podrun", "podrun image rm"},
		{"no space", on("/home", func(f *FileSystem) { f.Free = 9 << 20 }), "disk space", Warning,
			"9 MiB of 30 GiB are free for /home/dev/.local/share/podrun: most images do not fit", "podrun image rm"},
		{"few inodes", on("/home", func(f *FileSystem) { f.FreeFiles = 50_000 }), "inodes", Note,
			"50000 of 2000000 files are free for /home/dev/.local/share/podrun", "df -i"},
		{"a small file system with most inodes free", on("/home", func(f *FileSystem) { f.FreeFiles, f.Files = 50_000, 60_000 }), "inodes", OK, "", ""},
		{"no inodes", on("/home", func(f *FileSystem) { f.FreeFiles = 5 }), "inodes", Warning,
			"5 of 2000000 files are free for /home/dev/.local/share/podrun: most images do not fit", "df -i"},
		{"btrfs", on("/home", func(f *FileSystem) { f.FreeFiles, f.Files = 0, 0 }), "inodes", OK, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "gone" { // the error names the directory, which differs in every run
				v := fake(t, debian())
				tt.change(&v, nil)
				if f := v.data(); f.Level != Failure || !strings.Contains(f.Detail, tt.detail) || !strings.Contains(f.Hint, tt.hint) {
					t.Errorf("got %+v", f)
				}
				return
			}
			tt.test(t)
		})
	}
}

func TestClockAndLinger(t *testing.T) {
	for _, tt := range []finding{
		{"no lingering", func(_ *prober, f map[string]string) { delete(f, "/var/lib/systemd/linger/dev") }, "lingering", Warning,
			"pods of dev stop when it logs out, and do not start at boot", "loginctl enable-linger (or as root: loginctl enable-linger dev)"},
		{"no systemd", func(_ *prober, f map[string]string) {
			delete(f, "/var/lib/systemd/linger/dev")
			delete(f, "/run/systemd/system/x")
		}, "lingering", OK, "", ""},
		{"root", func(v *prober, f map[string]string) { v.uid = 0; delete(f, "/var/lib/systemd/linger/dev") }, "lingering", OK, "", ""},

		{"1970", func(v *prober, _ map[string]string) { v.now = time.Unix(100, 0) }, "clock", Warning,
			"the clock is not set: it shows 1970-01-01 00:01 UTC, which is before 2025-01-01; registries' certificates will not be valid", "timedatectl set-ntp true"},
		{"before the build", func(v *prober, _ map[string]string) { v.Built = v.now.Add(48 * time.Hour) }, "clock", Warning,
			"the clock is not set: it shows 2027-03-04 05:06 UTC, which is before 2027-03-06, when this podrun was built; registries' certificates will not be valid", "date -s"},
		{"after the build", func(v *prober, _ map[string]string) { v.Built = v.now.Add(-time.Hour) }, "clock", OK, "", ""},
		{"a board nobody tells the time", func(v *prober, f map[string]string) {
			delete(f, "/sys/class/rtc/rtc0")
			v.synced = func() bool { return false }
		}, "clock", Note, "the time is 2027-03-04 05:06 UTC; this machine has no clock that runs without power, and nothing sets it", "systemd-timesyncd"},
		{"a board without systemd", func(v *prober, f map[string]string) {
			delete(f, "/sys/class/rtc/rtc0")
			delete(f, "/run/systemd/system/x")
			v.synced = func() bool { return false }
		}, "clock", Note, "the time is 2027-03-04 05:06 UTC; this machine has no clock that runs without power, and nothing sets it", "apt-get install chrony"},
		{"a board with NTP", func(_ *prober, f map[string]string) { delete(f, "/sys/class/rtc/rtc0") }, "clock", OK, "", ""},

		{"no tun", func(v *prober, _ map[string]string) { v.openTun = func(string) error { return fs.ErrNotExist } }, "tun device", Note,
			"there is no /dev/net/tun: user-space networks are not available", "modprobe tun"},
		{"tun without its module", func(v *prober, _ map[string]string) { v.openTun = func(string) error { return unix.ENODEV } }, "tun device", Note,
			"there is no /dev/net/tun: user-space networks are not available", "modprobe tun"},
		{"tun for root only", func(v *prober, _ map[string]string) { v.openTun = func(string) error { return unix.EACCES } }, "tun device", Note,
			"/dev/net/tun cannot be opened by this user: user-space networks are not available", "chmod 0666 /dev/net/tun"},
		{"tun, and the kernel says something else", func(v *prober, _ map[string]string) { v.openTun = func(string) error { return unix.EIO } }, "tun device", Note,
			"open /dev/net/tun: input/output error", "modprobe tun"},
	} {
		t.Run(tt.name, tt.test)
	}
}

// A hanging probe does not delay the others: they answer, and it is named.
func TestAProbeThatHangs(t *testing.T) {
	files := debian()
	delete(files, "/etc/subuid")
	v := fake(t, files)
	fifo := v.root + "/etc/subuid" // opening it blocks, like a file on an unreachable server
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	findings := run(append(v.probes(), Probe{"vital", true, func() Finding { _, _ = v.read("/etc/subuid"); return okFinding("") }}), 3*time.Second)
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	for name, level := range map[string]Level{"subordinate ids": Warning, "vital": Failure, "memory": OK, "clock": OK} {
		f, _ := FindByName(findings, name)
		if f.Level != level || level != OK && (f.Detail != "no answer about the "+name+" within 3s" || f.Hint == "") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if err := FirstFailure(findings); err == nil || !strings.Contains(err.Error(), "no answer about the vital within") {
		t.Errorf("refusal: %v", err)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // unblocks both
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestMountIn(t *testing.T) {
	const text = "22 1 0:20 / / rw - ext4 /dev/vda rw\n30 22 0:30 / /home rw - ext4 /dev/vdb rw\n31 30 0:31 / /home/my\\040disk rw,nosuid - tmpfs t rw\nshort\n"
	for path, want := range map[string]string{
		"/usr/bin/newuidmap": "/", "/home/dev": "/home", "/homes": "/", "/home/my disk/x": "/home/my disk", "/": "/",
	} {
		if got := mountIn(text, path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
