package cgroups

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cgroup's files disappear with its directory and a plain directory's do not, so the trees of
// these tests contain directories only.
func tree(t *testing.T, dirs ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "podrun-1")
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRemoveTree(t *testing.T) {
	for name, dirs := range map[string][]string{
		"gone already":     nil,
		"empty":            {"."},
		"half-built":       {"web"},
		"nested by a user": {"web/a/b/c", "web/d", "db"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, dirs...)
			if err := removeTree(root); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(root); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", root, err)
			}
		})
	}
}

func TestRemoveTreeNamesWhatIsInTheWay(t *testing.T) {
	root := tree(t, "web")
	if err := os.WriteFile(root+"/web/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root); err == nil || !strings.Contains(err.Error(), "/web: directory not empty") {
		t.Errorf("got %v", err)
	}
}

func TestRemoveRefusesWhatIsNoPodsCgroup(t *testing.T) {
	for _, path := range []string{"", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/", "/sys/fs/cgroup/../../../home", "a", "/home/dev", "/sys/fs/cgroup/x/supervisor", tree(t, ".")} {
		if err := Remove(path); err == nil || !strings.Contains(err.Error(), "not a ") {
			t.Errorf("Remove(%q): got %v", path, err)
		}
	}
	if err := Remove("/sys/fs/cgroup/podrun-no-such"); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}

func TestKillOnOldKernelsSparesOtherNamespaces(t *testing.T) {
	// Without cgroup.kill the processes are listed; pid 0 would be the own process group.
	root := tree(t, ".")
	if err := os.WriteFile(root+"/cgroup.procs", []byte("0\n0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := kill(root); err != nil {
		t.Error(err)
	}
}

func TestKeyed(t *testing.T) {
	text := "low 0\noom 3\noom_kill 2\noom_group_kill 1\n"
	for key, want := range map[string]uint64{"oom_kill": 2, "oom": 3, "oom_group_kill": 1, "absent": 0} {
		if got, err := keyed(text, key); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", key, got, err, want)
		}
	}
	if _, err := keyed("populated x\n", "populated"); err == nil {
		t.Error("a word that is no number was taken")
	}
}

func TestCreatePodRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/a", ".hidden", "supervisor"} {
		if _, err := (Subtree{Path: t.TempDir()}).CreatePod(name, Limits{}, nil); err == nil || !strings.Contains(err.Error(), "is not a valid name") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
