package resource

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
)

func TestArtifactName(t *testing.T) {
	for file, want := range map[string]string{
		"oci://registry.example.org:5000/team/set:1":             "set",
		"oci://registry.example.org/team/set@sha256:" + "0123":   "set",
		"oci://registry.example.org/team/set:1@sha256:" + "0123": "set",
		"oci:/media/stick/layout/:1":                             "artifact",
		"oci:layout:1":                                           "oci",
		"oci:/media/stick/layout":                                "layout",
		"oci://registry.example.org/..":                          "artifact",
	} {
		if got := artifactName(file); got != want {
			t.Errorf("%s: %q instead of %q", file, got, want)
		}
	}
}

// TestCopyFiles: only files and directories are copied, within the limits.
func TestCopyFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string // in the error; "": the file a/b.yaml
	}{
		"a file": {func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "a/b.yaml"), []byte("x"), 0o644)
		}, ""},
		"a link":           {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "b.yaml")) }, "b.yaml is not a regular file"},
		"a directory link": {func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "etc")) }, "etc is not a regular file"},
		"a large file":     {func(dir string) error { return truncated(filepath.Join(dir, "b.yaml"), api.MaxArtifact+1) }, "more than 64 MiB"},
	} {
		layer, to := t.TempDir(), filepath.Join(t.TempDir(), "set")
		if err := c.make(layer); err != nil {
			t.Fatal(err)
		}
		written, err := copyFiles([]string{layer}, to)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v instead of %q", name, err, c.want)
			}
		case err != nil || !slices.Equal(written, []string{"a/b.yaml"}):
			t.Errorf("%s: %q, %v", name, written, err)
		}
	}
}

// TestArtifactDirs: what a killed command has left is removed, and what another one uses stays.
func TestArtifactDirs(t *testing.T) {
	runtime := t.TempDir()
	first, used, err := makeArtifactDir(runtime)
	if err != nil {
		t.Fatal(err)
	}
	second, lock, err := makeArtifactDir(runtime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); err != nil {
		t.Error(err)
	}
	used.Close()
	lock.Close()
	third, lock, err := makeArtifactDir(runtime)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if left, _ := filepath.Glob(filepath.Join(runtime, artifactDirs+"*")); !slices.Equal(left, []string{third}) {
		t.Errorf("of %s and %s there is %s beside %s", first, second, left, third)
	}
}

func truncated(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// TestArtifactManifests: which files of an artifact are manifests, and in which order.
func TestArtifactManifests(t *testing.T) {
	a := &artifact{file: "oci://r/set:1", top: "/top/set"}
	for _, c := range []struct {
		sub, kind string
		written   []string
		want      string // the files, or what the error says
	}{
		{"", api.FluxArtifact, []string{"z.yaml", "README.md", "a/b.yml", "a/c.json"}, "/top/set/a/b.yml /top/set/a/c.json /top/set/z.yaml"},
		{"a", api.FluxArtifact, []string{"z.yaml", "a/b.yml", "ab/c.json"}, "/top/set/a/b.yml"},
		{"", api.ComposeArtifact, []string{"compose.yaml", ".env", "compose.override.yaml"}, "/top/set/compose.yaml /top/set/compose.override.yaml"},
		{"", api.ComposeArtifactV10, []string{"compose.yaml", "a.yaml"}, "/top/set/compose.yaml /top/set/a.yaml"},
		{"", api.FluxArtifact, []string{"README.md"}, "there are no manifests in oci://r/set:1"},
		{"../x", api.FluxArtifact, []string{"a.yaml"}, "--path ../x is not a path in it"},
		{"", api.FluxArtifact, []string{"a.yaml", "b/kustomization.yaml"}, "b/kustomization.yaml is a kustomization"},
		{"c", api.FluxArtifact, []string{"c/a.yaml", "b/kustomization.yaml"}, "/top/set/c/a.yaml"},
	} {
		found, err := a.manifests(c.sub, c.written, c.kind)
		got := strings.Join(found, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%q of %q: %q instead of %q", c.sub, c.written, got, c.want)
		}
	}
}

// TestFindKustomization: an artifact's kustomization is the one in the directory of --path.
func TestFindKustomization(t *testing.T) {
	a := &artifact{top: "/top/set"}
	written := []string{"base/kustomization.yaml", "base/pod.yaml", "overlays/a/Kustomization", "x.yaml"}
	for sub, want := range map[string]string{"": "", ".": "", "base": "/top/set/base", "overlays/a": "/top/set/overlays/a", "overlays": "", "../set/base": ""} {
		if got := a.findKustomization(sub, written); got != want {
			t.Errorf("%q: %q, want %q", sub, got, want)
		}
	}
	if got := a.findKustomization("", []string{"kustomization.yml"}); got != "/top/set" {
		t.Errorf("at the top: %q", got)
	}
}
