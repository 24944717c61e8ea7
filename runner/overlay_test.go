package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// A file system that cannot hold root file systems (here an overlay) is refused
// with the cure before the pod begins; one that can is tried once.
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
