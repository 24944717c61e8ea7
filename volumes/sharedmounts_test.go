package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// pod makes shared mounts for namespaces other than the test's own.
func pod(t testing.TB) (SharedMountSpec, SharedMounts) {
	t.Helper()
	testenv.NoLeaks(t)
	testenv.Need(t, canMountSysfs)
	proc := testenv.NewNamespaces(t, unix.CLONE_NEWNET|unix.CLONE_NEWIPC)
	s := SharedMountSpec{Dir: filepath.Join(t.TempDir(), "sandbox"), NetNS: proc + "/ns/net", IPCNS: proc + "/ns/ipc"}
	shared, err := s.Mount()
	must(t, err)
	t.Cleanup(func() {
		must(t, s.Unmount())
		left, err := os.ReadDir(s.Dir)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("left in the sandbox's directory: %v", left)
		}
	})
	return s, shared
}

// canMountSysfs returns an error on hosts that are containers themselves: parts of their /sys are
// covered, so the kernel refuses a full one.
func canMountSysfs() error {
	dir, err := os.MkdirTemp("", "sysfs-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("sysfs", dir, "sysfs", harmless|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount sysfs in a user namespace: %w", err)
	}
	return unix.Unmount(dir, 0)
}

func TestSysIsOfThePodsNetwork(t *testing.T) {
	s, shared := pod(t)
	flags := filepath.Join(shared.Sys, "class/net/lo/flags")
	wantFile(t, flags, "0x8\n")
	must(t, nsthread.Do(loopbackUp, s.NetNS))
	wantFile(t, flags, "0x9\n") // IFF_UP is bit 0
}

// loopbackUp sets IFF_UP on lo of the calling thread's network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

func TestSysIsReadOnlyAndMasked(t *testing.T) {
	_, shared := pod(t)
	if err := os.WriteFile(filepath.Join(shared.Sys, "class/net/lo/mtu"), []byte("1500"), 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("write into /sys: %v, want EROFS", err)
	}
	masked := 0
	for _, name := range sysMasked {
		if _, err := os.Stat(filepath.Join("/sys", name)); err != nil {
			continue
		}
		masked++
		dir := filepath.Join(shared.Sys, name)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			t.Errorf("%s has %d entries, error %v, want none", name, len(entries), err)
		}
		if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); !errors.Is(err, unix.EROFS) {
			t.Errorf("write over %s: %v, want EROFS", name, err)
		}
	}
	if masked == 0 {
		t.Error("nothing is masked")
	}
}

func TestDev(t *testing.T) {
	s, shared := pod(t)
	dev := filepath.Join(t.TempDir(), "container", "dev")
	must(t, shared.MountDev(dev))
	t.Cleanup(func() {
		must(t, UnmountDev(dev))
		wantMissing(t, dev)
	})

	for _, name := range devNodes {
		var host, mine unix.Stat_t
		must(t, unix.Stat("/dev/"+name, &host))
		must(t, unix.Stat(filepath.Join(dev, name), &mine))
		if mine.Rdev != host.Rdev || mine.Mode != host.Mode {
			t.Errorf("%s is device %#x mode %o, want %#x %o", name, mine.Rdev, mine.Mode, host.Rdev, host.Mode)
		}
	}
	must(t, os.WriteFile(filepath.Join(dev, "null"), []byte("x"), 0))
	zero, err := os.Open(filepath.Join(dev, "zero"))
	must(t, err)
	defer zero.Close()
	if _, err := io.ReadFull(zero, make([]byte, 10)); err != nil {
		t.Errorf("read /dev/zero: %v", err)
	}
	for name, want := range devLinks {
		if got, err := os.Readlink(filepath.Join(dev, name)); got != want {
			t.Errorf("%s links to %q (%v), want %q", name, got, err, want)
		}
	}
	entries, err := os.ReadDir(dev)
	must(t, err)
	if want := len(devNodes) + len(devLinks) + 3; len(entries) != want {
		t.Errorf("/dev has %v, want %d entries", entries, want)
	}
	write(t, filepath.Join(shared.Shm, "f"), "shared")
	wantFile(t, filepath.Join(dev, "shm", "f"), "shared")
	wantMode(t, filepath.Join(dev, "shm"), 0o777|os.ModeSticky)

	must(t, nsthread.Do(func() error { return makeQueue("podrun-test") }, s.IPCNS))
	if _, err := os.Stat(filepath.Join(dev, "mqueue", "podrun-test")); err != nil {
		t.Errorf("the pod's message queue: %v", err)
	}
}

// makeQueue makes a POSIX message queue in the IPC namespace of the thread.
func makeQueue(name string) error {
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(b)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func TestContainersDoNotShareDev(t *testing.T) {
	_, shared := pod(t)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, dev := range []string{one, two} {
		must(t, shared.MountDev(dev))
		t.Cleanup(func() { must(t, UnmountDev(dev)) })
	}
	must(t, os.Remove(filepath.Join(one, "stdin")))
	write(t, filepath.Join(one, "log"), "x")
	wantMissing(t, filepath.Join(two, "log"))
	if _, err := os.Readlink(filepath.Join(two, "stdin")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(one, "null")); !errors.Is(err, unix.EBUSY) {
		t.Errorf("remove a device: %v, want EBUSY", err)
	}
}

func TestTemplatesAreMadeAgain(t *testing.T) {
	s, first := pod(t)
	write(t, filepath.Join(first.Shm, "f"), "left by a killed supervisor")
	second, err := s.Mount()
	must(t, err)
	wantMissing(t, filepath.Join(second.Shm, "f"))
	points, err := mountsBelow(s.Dir)
	must(t, err)
	seen := map[string]bool{}
	for _, p := range points {
		if seen[p] {
			t.Errorf("%s is mounted twice", p)
		}
		seen[p] = true
	}
}

func TestTemplatesAreMadeWholeOrNot(t *testing.T) {
	s, shared := pod(t)
	broken := []SharedMountSpec{
		{Dir: s.Dir + "2", NetNS: "/nowhere/net", IPCNS: s.IPCNS},
		{Dir: s.Dir + "2", NetNS: s.NetNS, IPCNS: "/nowhere/ipc"},
		{Dir: s.Dir + "2", NetNS: "/etc/passwd", IPCNS: s.IPCNS},
	}
	for _, b := range broken {
		_, err := b.Mount()
		if err == nil || !strings.Contains(err.Error(), b.NetNS) && !strings.Contains(err.Error(), b.IPCNS) {
			t.Errorf("error %v, want one that names the namespace", err)
		}
		left, err := os.ReadDir(b.Dir)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}

	dev := filepath.Join(s.Dir, "dev")
	incomplete := SharedMounts{Sys: shared.Sys, Shm: shared.Shm, Mqueue: "/nowhere/mqueue"}
	if err := incomplete.MountDev(dev); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want not exist", err)
	}
	wantMissing(t, dev)
	must(t, UnmountDev(dev))
}

// TestDisableDevices: device files in a mount are disabled, and it keeps the mount's other flags, with either system
// call.
func TestDisableDevices(t *testing.T) {
	testenv.NoLeaks(t)
	for name, do := range map[string]func(string) error{"mount_setattr": disableDevices, "mount": remountWithoutDevices} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY|unix.MS_NOEXEC|unix.MS_NOATIME, ""))
			t.Cleanup(func() { must(t, Unmount(dir)) })
			must(t, do(dir))
			var st unix.Statfs_t
			must(t, unix.Statfs(dir, &st))
			if want := int64(harmlessStat | unix.ST_RDONLY | unix.ST_NOATIME); int64(st.Flags)&want != want {
				t.Errorf("flags %#x, want %#x", st.Flags, want)
			}
		})
	}
}
