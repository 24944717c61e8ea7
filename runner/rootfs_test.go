package runner

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/volumes"
)

// A file system that does not support overlay mounts (here an overlay) gives an error with a hint before
// the pod starts. A file system that does is tested once.
func TestPodRefusesAFileSystemWithoutOverlay(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	root, err := volumes.MountRootfs(dir, []string{l}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := volumes.UnmountRootfs(dir); err != nil {
			t.Error(err)
		}
	})
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	w := wholePod{t: t, dirs: store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(t.TempDir(), "run")}}
	w.place = w.dirs.Pod(plan.Namespace, plan.Name)
	err = w.start(plan)
	reapAll()
	if err == nil || !strings.Contains(report.Hint(err), "XDG_DATA_HOME") || strings.Contains(err.Error(), "hint") {
		t.Errorf("a pod on an overlay: %v; hint %q", err, report.Hint(err))
	}
	w.remove()

	good := startWhole(t, plan)
	good.until(running)
	if mark, err := good.dirs.OverlayMark(); err != nil || !strings.HasPrefix(mark, good.dirs.Runtime+"/") || !exists(mark) {
		t.Errorf("what was found out about the file system is not kept in %s: %v", mark, err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// CVE-2019-5736 (S2): no container can write to podrun's program, by whatever path. Here the program is the
// test binary.
func TestProgramCannotBeOverwritten(t *testing.T) {
	testenv.NoLeaks(t)
	before := programSum(t)
	l := layer(t)
	if err := os.WriteFile(l+"/bin/script", []byte("#!/proc/self/exe\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/exe", l+"/bin/itself"); err != nil {
		t.Fatal(err)
	}
	// The writer runs all the time: it sees every process that enters.
	writer := shell(l, "writer", "while :; do for p in /proc/[0-9]*; do echo evil > $p/exe; done; done 2>/dev/null")
	writer.Capabilities = append(writer.Capabilities, "CAP_SYS_PTRACE")
	plan := newPlan(nil, []pod.Container{writer})
	plan.ShareProcessNamespace = true
	p := start(t, plan)
	p.running()
	for range 4 * *torture {
		for _, program := range []string{"/bin/script", "/bin/itself", "/proc/self/exe"} {
			p.exec("writer", program, "_supervisor")
		}
	}
	if after := programSum(t); after != before {
		t.Errorf("the program has changed from %s to %s", before, after)
	}
	if code, out := p.exec("writer", "/bin/sh", "-c", "ls -A /proc/1/root/; : > /proc/1/exe"); code == 0 || strings.Count(out, "Permission denied") != strings.Count(out, "\n") {
		t.Errorf("the pause process leads out: code %d, %s", code, out)
	}
}

func programSum(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// A pod runs even if its image cannot have the label that containers may read, and has a warning.
func TestLayersThatKeepTheirLabel(t *testing.T) {
	testenv.NoLeaks(t)
	const label = "system_u:object_r:container_ro_file_t:s0"
	l := layer(t)
	plan := newPlan([]pod.Container{shell(l, "first", "exit 0")}, []pod.Container{shell(l, "app", "exec sleep 1000")})
	plan.LayerLabel = label
	w := startWhole(t, plan)
	w.until(running)
	has := make([]byte, 256)
	n, err := unix.Getxattr(l, "security.selinux", has)
	want := 1
	if err == nil && strings.HasPrefix(string(has[:n]), label) { // with SELinux the label can be set
		want = 0
	}
	w.until(func(st *pod.Status) bool {
		said := 0
		for _, text := range st.Warnings {
			if strings.HasPrefix(text, "layers of an image keep their SELinux label (1 of them)") {
				said++
			}
		}
		if said > want {
			t.Errorf("warnings %q", st.Warnings)
		}
		return said >= want
	})
}

// Warnings that arise while a sandbox is made, such as its network's, belong to that sandbox and
// replace the warnings of the last one.
func TestAWarningWhileItIsMade(t *testing.T) {
	plan := newPlan(nil, nil)
	e := testEngine(plan, store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "p"))
	s := e.newSandbox(plan, 0)
	s.Warn("one")
	if got := s.Warnings(); !slices.Equal(got, []string{"one"}) || !slices.Equal(e.warnings, got) {
		t.Errorf("warnings %q, of the engine %q", got, e.warnings)
	}
}
