package volumes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// podrun's own mounts are hidden, whatever blanks are in their path; other mounts are not.
func TestMountHost(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	own, others := filepath.Join(dir, "own dir"), filepath.Join(dir, "own dir too")
	for _, d := range []string{filepath.Join(own, "secrets"), filepath.Join(own, "secrets", "below"), others} {
		must(t, MountTmpfs(d, 1<<20, 0o777, ""))
	}
	write(t, filepath.Join(others, "file"), "host")
	t.Cleanup(func() { must(t, unmountBelow(dir)) })
	must(t, unix.Mount("proc", "/proc", "proc", 0, "")) // like a pod's, which covers the host's
	t.Cleanup(func() { must(t, unix.Unmount("/proc", 0)) })

	host := filepath.Join(t.TempDir(), "host")
	must(t, MountHost(host, []string{own}))
	points, err := mountPoints()
	must(t, err)
	procs := 0
	for _, p := range points {
		if p == "/proc" { // all but the pod's must be there
			procs--
		}
		rest, ok := strings.CutPrefix(p, host)
		if ok && rest == "/proc" {
			procs++
		}
		if ok && strings.HasPrefix(rest, own+"/") {
			t.Errorf("%s is seen", rest)
		}
	}
	if procs != -1 {
		t.Errorf("/proc is mounted %d times more often", procs)
	}
	wantFile(t, filepath.Join(host, others, "file"), "host")
	wantMode(t, filepath.Join(own, "secrets"), 0o777) // podrun itself still sees it

	// A path of the host is resolved there, including links.
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(others+"/file", link))
	f, err := OpenHostPath(host, link, HostPathFile)
	must(t, err)
	defer f.Close()
	if name, err := os.Readlink(fmt.Sprint("/proc/self/fd/", f.Fd())); err != nil || name != filepath.Join(host, others, "file") {
		t.Errorf("opened %s, %v", name, err)
	}
	must(t, UnmountTree(host))
	wantFile(t, filepath.Join(others, "file"), "host")
}
