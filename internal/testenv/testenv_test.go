package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
)

func TestMain(m *testing.M) { Main(m) }

func TestRunsAsRootOfAnOrdinaryUser(t *testing.T) {
	NoLeaks(t)
	if os.Getuid() != 0 || os.Getgid() != 0 || os.Getpid() != 1 {
		t.Errorf("uid %d gid %d pid %d, want 0, 0 and 1", os.Getuid(), os.Getgid(), os.Getpid())
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		var first, outside, count uint32
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(b), &first, &outside, &count); err != nil || first != 0 || outside == 0 || count != 1 {
			t.Errorf("%s begins with %d %d %d (%v), want 0, an ordinary user, 1", file, first, outside, count, err)
		}
		if strings.Count(string(b), "\n") < 2 {
			t.Errorf("%s maps no subordinate ids: %q", file, b)
		}
	}
	links, err := os.ReadDir("/proc/sys/net/ipv4/conf")
	if err != nil || len(links) != 3 { // all, default, lo
		t.Errorf("network of %v (%v), want an empty one", links, err)
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Errorf("mount: %v", err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
	if err := os.Chown(dir, 1000, 1000); err != nil {
		t.Errorf("give a file to user 1000: %v", err)
	}
}

// recorder records the verdict of the function under test.
type recorder struct {
	testing.TB
	cleanups []func()
	said     []string
	skipped  bool
}

func (r *recorder) Helper()                     {}
func (r *recorder) Cleanup(f func())            { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any)   { r.said = append(r.said, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any)   { r.Errorf(f, a...) }
func (r *recorder) Skipf(f string, args ...any) { r.skipped = true; r.Errorf(f, args...) }

func TestNoLeaksFindsWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	leaks := []struct {
		want string
		do   func() (undo func() error, err error)
	}{
		{"", func() (func() error, error) { return func() error { return nil }, nil }},
		{"descriptor of /etc/passwd", func() (func() error, error) {
			f, err := os.Open("/etc/passwd")
			return f.Close, err
		}},
		{"mount " + dir, func() (func() error, error) {
			err := unix.Mount("tmpfs", dir, "tmpfs", 0, "")
			return func() error { return unix.Unmount(dir, 0) }, err
		}},
		{"process", func() (func() error, error) {
			cmd := exec.Command("sleep", "1000")
			err := cmd.Start()
			return func() error { cmd.Process.Kill(); cmd.Wait(); return nil }, err
		}},
		{"goroutines: ", func() (func() error, error) {
			stop := make(chan bool)
			for range 10 { // several ending things, counted by NoLeaks at first, could hide one leak
				go func() { <-stop }()
			}
			return func() error { close(stop); return nil }, nil
		}},
		{"thread in uts:", func() (func() error, error) {
			stop, ready := make(chan bool), make(chan error)
			go nsthread.Do(func() error {
				ready <- unix.Unshare(unix.CLONE_NEWUTS)
				<-stop
				return nil
			})
			return func() error { close(stop); return nil }, <-ready
		}},
	}
	for _, leak := range leaks {
		t.Run(leak.want, func(t *testing.T) {
			NoLeaks(t)
			r := &recorder{TB: t}
			noLeaks(r, 50*time.Millisecond)
			undo, err := leak.do()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.cleanups {
				f()
			}
			if err := undo(); err != nil {
				t.Error(err)
			}
			output := strings.Join(r.said, "\n")
			if leak.want == "" && output != "" || !strings.Contains(output, leak.want) {
				t.Errorf("said %q, want %q in it", output, leak.want)
			}
		})
	}
}

func TestNeed(t *testing.T) {
	lacks := func() error { return fmt.Errorf("no overlay here") }
	tests := []struct {
		ci    string
		probe func() error
		skip  bool
		said  string
	}{
		{"", func() error { return nil }, false, ""},
		{"true", func() error { return nil }, false, ""},
		{"", lacks, true, "no overlay here"},
		{"true", lacks, false, "no overlay here"},
	}
	for _, tt := range tests {
		t.Setenv("CI", tt.ci)
		r := &recorder{TB: t}
		Need(r, tt.probe)
		output := strings.Join(r.said, "")
		if r.skipped != tt.skip || !strings.Contains(output, tt.said) || tt.said == "" && output != "" {
			t.Errorf("CI=%q: skipped %v, said %q, want %v, %q", tt.ci, r.skipped, output, tt.skip, tt.said)
		}
	}
}

func TestChooseUser(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/false\nbroken line\nann:x:1000:100:Ann,,,:/home/ann:/bin/bash\nbob:x:1001:1001::/home/bob:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
	tests := []struct{ name, subuid, want string }{
		{"", "root:1:2\nunknown:1:2\ndaemon:1:2\nnobody:1:2\nbob:100000:65536\nann:200000:65536\n", "bob"},
		{"ann", "bob:100000:65536\n", "ann"},
		{"", "", ""},
		{"", "root:100000:65536\n", ""},
		{"root", "root:100000:65536\n", ""},
		{"carol", "carol:100000:65536\n", ""},
	}
	for _, tt := range tests {
		got, err := chooseUser(tt.name, passwd, tt.subuid)
		if got.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q of %q: %+v, error %v, want %q", tt.name, tt.subuid, got, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "PODRUN_TEST_USER") {
			t.Errorf("%q does not contain the hint", err)
		}
	}
	ann, err := chooseUser("ann", passwd, "")
	if want := (account{"ann", 1000, 100, "/home/ann"}); ann != want || err != nil {
		t.Errorf("%+v, %v, want %+v", ann, err, want)
	}
}

func TestBusyboxRootfs(t *testing.T) {
	NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "rootfs")
	if err := BusyboxRootfs(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "id -un && ls /etc")
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	cmd.Dir = "/home/user"
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "user\ngroup\npasswd\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// The tests here run inside namespaces, where root owns everything.
func TestHostProbes(t *testing.T) {
	if err := IDs(); err != nil {
		t.Errorf("root of a user namespace needs no ids: %v", err)
	}
	t.Setenv("CI", "")
	if err := probeError("no such probe"); err == nil {
		t.Error("a probe that does not exist finds everything as it should be")
	}
}
