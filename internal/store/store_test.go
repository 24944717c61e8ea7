package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

func testDirs(t *testing.T) Dirs {
	t.Helper()
	root := t.TempDir()
	return Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}
}

func TestPodLivesAndGoes(t *testing.T) {
	d := testDirs(t)
	p := d.Pod("default", "web")
	if p.Exists() || p.Alive() {
		t.Fatal("a pod that nobody made exists")
	}
	if _, err := p.Status(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("status of a pod that nobody made: %v", err)
	}
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web", Containers: []pod.Container{{Name: "a"}}}
	if err := p.Create(plan, []byte(`{"kind":"Pod"}`)); err != nil {
		t.Fatal(err)
	}
	got, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, got); diff != "" {
		t.Errorf("plan (-saved +read):\n%s", diff)
	}
	if m, err := p.Manifest(); err != nil || string(m) != `{"kind":"Pod"}` {
		t.Errorf("manifest %q: %v", m, err)
	}
	pods, err := d.Pods()
	if err != nil || len(pods) != 1 || pods[0] != p {
		t.Errorf("pods %v: %v", pods, err)
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{d.Data, d.Runtime} {
		if left, err := os.ReadDir(filepath.Join(dir, "pods")); err != nil || len(left) > 0 {
			t.Errorf("left below %s: %v %v", dir, left, err)
		}
	}
}

// A running pod writes to tmpfs only; its end outlives a reboot.
func TestStatusReachesTheDiskAtTheEnd(t *testing.T) {
	d := testDirs(t)
	p := d.Pod("default", "web")
	if err := p.Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	reboot := func() {
		if err := os.RemoveAll(p.RuntimeDir()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.WriteStatus(&pod.Status{Phase: pod.Running}); err != nil {
		t.Fatal(err)
	}
	if st, err := p.Status(); err != nil || st.Phase != pod.Running {
		t.Errorf("status %+v: %v", st, err)
	}
	reboot()
	if st, err := p.Status(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("status of a running pod after a reboot: %+v %v", st, err)
	}
	if err := os.MkdirAll(p.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteStatus(&pod.Status{Phase: pod.Failed, Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	reboot()
	if st, err := p.Status(); err != nil || st.Reason != "because" {
		t.Errorf("status of an ended pod after a reboot: %+v %v", st, err)
	}
	removing := d.Pod("default", "removing")
	if err := removing.Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := removing.WriteRemoving(&pod.Status{Phase: pod.Failed, Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	if st, err := removing.Status(); err != nil || st.Reason != "because" {
		t.Errorf("status of a pod that is about to be removed: %+v %v", st, err)
	}
	if err := os.RemoveAll(removing.RuntimeDir()); err != nil {
		t.Fatal(err)
	}
	if st, err := removing.Status(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("status of a pod that was about to be removed after a reboot: %+v %v", st, err)
	}
}

func TestLock(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("a locked pod is not alive")
	}
	if _, err := p.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	waited := make(chan error)
	go func() {
		second, err := p.WaitLock()
		if err == nil {
			err = second.Close()
		}
		waited <- err
	}()
	lock.Close()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if p.Alive() {
		t.Error("the pod is alive with no lock held")
	}
}

// A process that waited for a pod that was removed meanwhile gets the lock of the next pod of that
// name, not of the removed file.
func TestLockOfARemovedPod(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	old, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	next, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	old.Close()
	if !p.Alive() {
		t.Error("the new pod's lock is not held")
	}
}

// A pod that was started without a login session is found after a login, which sets another runtime
// directory. After a reboot it is only on disk.
func TestPodStaysInItsRuntimeDirectory(t *testing.T) {
	d := testDirs(t)
	lock, err := d.Pod("default", "web").Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := d.Pod("default", "web").Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	login := Dirs{Data: d.Data, Runtime: filepath.Join(t.TempDir(), "run")}
	if p := login.Pod("default", "web"); !p.Alive() || p.RuntimeDir() != d.Pod("default", "web").RuntimeDir() {
		t.Errorf("after a login the pod is looked for in %s", p.RuntimeDir())
	}
	lock.Close()
	if err := os.RemoveAll(d.Runtime); err != nil {
		t.Fatal(err)
	}
	if p := login.Pod("default", "web"); p.Alive() || !strings.HasPrefix(p.RuntimeDir(), login.Runtime) {
		t.Errorf("after a reboot the pod is looked for in %s", p.RuntimeDir())
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken for a pod's name", name)
				}
			}()
			Dirs{Data: "/d", Runtime: "/r"}.Pod("default", name)
		}()
	}
}

// A socket address has 108 bytes; a pod's name may have 253.
func TestSocketOfALongName(t *testing.T) {
	p := testDirs(t).Pod(strings.Repeat("n", 63), strings.Repeat("a", 253))
	if err := p.Create(&pod.Plan{}, nil); err != nil {
		t.Fatal(err)
	}
	l, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(filepath.Join(p.RuntimeDir(), socketFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket %v: %v", st, err)
	}
	c, err := p.Dial()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestWriteFileReplacesAtomically(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != "two" {
		t.Errorf("%q: %v", b, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("temporary files are left: %v %v", entries, err)
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "no", "f"), nil); err == nil {
		t.Error("writing into a missing directory is no error")
	}
}

func TestDirsOfAUser(t *testing.T) {
	root := Dirs{Data: "/var/lib/podrun", Runtime: "/run/podrun"}
	tests := []struct {
		name string
		uid  int
		env  map[string]string
		want Dirs
	}{
		{"root", 0, map[string]string{"HOME": "/root", "XDG_RUNTIME_DIR": "/x"}, root},
		{"home", 1, map[string]string{"HOME": "/h", "XDG_RUNTIME_DIR": "/r"}, Dirs{Data: "/h/.local/share/podrun", Runtime: "/r/podrun"}},
		{"data", 1, map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r"}, Dirs{Data: "/d/podrun", Runtime: "/r/podrun"}},
		{"no login session", 999999, map[string]string{"HOME": "/h"}, Dirs{Data: "/h/.local/share/podrun", Runtime: "/h/.local/share/podrun/run/" + BootID()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dirsOf(tt.uid, func(k string) string { return tt.env[k] })
			if err != nil || got != tt.want {
				t.Errorf("directories %v, want %v: %v", got, tt.want, err)
			}
		})
	}
	if _, err := dirsOf(1, func(string) string { return "" }); report.Hint(err) == "" {
		t.Errorf("without a home: %v, want an error with a hint", err)
	}
}

// Without a runtime directory of its own the user has one for each boot. No other boot's is used.
func TestRuntimeDirectoryOfABoot(t *testing.T) {
	data := t.TempDir()
	earlier := Dirs{Data: data, Runtime: filepath.Join(data, "run", "earlier")}
	p := earlier.Pod("default", "web")
	lock, err := p.Lock()
	if err == nil {
		err = errors.Join(p.Create(&pod.Plan{}, nil), p.MarkRemoving(), earlier.linkSecrets(), lock.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	now := Dirs{Data: data, Runtime: bootRuntime(data)}
	p = now.Pod("default", "web")
	if !strings.HasPrefix(p.RuntimeDir(), now.Runtime) || p.Removing() {
		t.Errorf("the pod is looked for in %s", p.RuntimeDir())
	}
	if dir, err := now.secretsDir(); err != nil || !strings.HasPrefix(dir, now.Runtime) {
		t.Errorf("Secrets are looked for in %s: %v", dir, err)
	}
	now.removeOtherBoots()
	if isDir(earlier.Runtime) {
		t.Error("the directory of the earlier boot is left")
	}
}

// In /tmp any user may have created the directory first.
func TestPrivateRefusesWhatOthersCanWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "podrun")
	if err := makePrivate(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := makePrivate(dir); report.Hint(err) == "" {
		t.Errorf("a directory open to all: %v, want an error with a hint", err)
	}
	link := filepath.Join(t.TempDir(), "podrun")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := makePrivate(link); err == nil {
		t.Error("a symbolic link was taken for a directory")
	}
}
