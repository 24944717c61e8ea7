package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// A layer is labelled completely and not visited again; without a label nothing changes.
func TestLabelLayers(t *testing.T) {
	testenv.NoLeaks(t)
	const label = "system_u:object_r:container_ro_file_t:s0"
	layer := filepath.Join(t.TempDir(), "layer")
	must(t, MountTmpfs(layer, 1<<20, 0o755, ""))
	t.Cleanup(func() { must(t, Unmount(layer)) })
	write(t, filepath.Join(layer, "early"), "x")
	labelled := func(name string) bool {
		has := make([]byte, 256)
		n, err := unix.Lgetxattr(filepath.Join(layer, name), labelName, has)
		return err == nil && strings.TrimRight(string(has[:n]), "\x00") == label
	}
	give := func(label string) {
		if kept, err := LabelLayers([]string{layer}, label); len(kept) > 0 || err != nil {
			t.Fatal(kept, err)
		}
	}
	give("")
	if labelled("") || labelled("early") {
		t.Error("a label that nobody has asked for")
	}
	give(label)
	if !labelled("") || !labelled("early") {
		t.Error("a file of the layer has no label")
	}
	must(t, unix.Setxattr(filepath.Join(layer, "early"), labelName, []byte("system_u:object_r:other_t:s0"), 0))
	give(label)
	if labelled("early") {
		t.Error("a layer that has its label is looked through again")
	}
	if _, err := LabelLayers([]string{filepath.Join(layer, "none")}, label); err == nil {
		t.Error("a layer that is not there is labelled")
	}
}

// A layer's directory marks that everything in it has the label, so it comes last, and stays
// unlabelled if a file could not be labelled.
func TestLayersMark(t *testing.T) {
	testenv.NoLeaks(t)
	layer := t.TempDir()
	write(t, filepath.Join(layer, "f"), "x")
	write(t, filepath.Join(layer, "d", "deep", "f"), "x")
	root, err := os.Open(layer)
	must(t, err)
	defer root.Close()
	for refused, want := range map[string]bool{"": true, "f": false, "d/deep/f": false, "d": false} {
		var done []string
		left, err := markLast(root, func(fd int, _ *unix.Stat_t) (bool, error) {
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			must(t, err)
			name, err := filepath.Rel(layer, path)
			must(t, err)
			done = append(done, name)
			return name != refused, nil
		})
		must(t, err)
		if (left == 0) != want || left > 1 {
			t.Errorf("with %q refused %d are left", refused, left)
		}
		if index := slices.Index(done, "."); want && index != 4 || !want && index >= 0 {
			t.Errorf("with %q refused it does %q", refused, done)
		}
	}
}

// On a file system without labels no file is tried. A layer with another label is reported.
func TestLayersThatTakeNoLabel(t *testing.T) {
	testenv.NoLeaks(t)
	const label = "system_u:object_r:container_ro_file_t:s0"
	memory, fixed := filepath.Join(t.TempDir(), "memory"), filepath.Join(t.TempDir(), "fixed")
	must(t, MountMemory(memory, ""))
	t.Cleanup(func() { must(t, Unmount(memory)) })
	write(t, filepath.Join(memory, "f"), "x")
	if kept, err := LabelLayers([]string{memory}, label); len(kept) > 0 || err != nil {
		t.Error(kept, err)
	}
	must(t, MountTmpfs(fixed, 1<<20, 0o755, ""))
	t.Cleanup(func() { must(t, Unmount(fixed)) })
	write(t, filepath.Join(fixed, "f"), "x")
	must(t, unix.Setxattr(fixed, labelName, []byte("system_u:object_r:other_t:s0"), 0))
	must(t, unix.Mount("", fixed, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""))
	kept, err := LabelLayers([]string{fixed, memory}, label)
	must(t, err)
	if len(kept) != 1 || !errors.Is(kept[0], unix.EROFS) {
		t.Errorf("of what is fixed it says %v", kept)
	}
}

// A pipe gets a label where SELinux is enabled; elsewhere it is unchanged, and files other than
// pipes always are.
func TestLabelPipe(t *testing.T) {
	testenv.NoLeaks(t)
	const label = "system_u:object_r:container_file_t:s0:c1,c2"
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	must(t, LabelPipe(w, label))
	must(t, LabelPipe(w, ""))
	dir := filepath.Join(t.TempDir(), "files")
	must(t, MountTmpfs(dir, 1<<20, 0o755, ""))
	t.Cleanup(func() { must(t, Unmount(dir)) })
	write(t, filepath.Join(dir, "f"), "x")
	f, err := os.Open(filepath.Join(dir, "f"))
	must(t, err)
	defer f.Close()
	must(t, LabelPipe(f, label))
	has := make([]byte, 256)
	if n, err := unix.Fgetxattr(int(f.Fd()), labelName, has); err == nil && strings.HasPrefix(string(has[:n]), label) {
		t.Error("a user's file is labelled as if it were the container's")
	}
}
