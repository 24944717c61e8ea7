package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// A layer is labelled whole, and not looked into again; where nothing is asked for, nothing is.
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
	must(t, LabelLayers([]string{layer}, ""))
	if labelled("") || labelled("early") {
		t.Error("a label that nobody has asked for")
	}
	must(t, LabelLayers([]string{layer}, label))
	if !labelled("") || !labelled("early") {
		t.Error("a file of the layer has no label")
	}
	must(t, unix.Setxattr(filepath.Join(layer, "early"), labelName, []byte("system_u:object_r:other_t:s0"), 0))
	must(t, LabelLayers([]string{layer}, label))
	if labelled("early") {
		t.Error("a layer that has its label is looked through again")
	}
	if err := LabelLayers([]string{filepath.Join(layer, "none")}, label); err == nil {
		t.Error("a layer that is not there is labelled")
	}
}

// A pipe can have a label where there is SELinux; elsewhere it is left as it is, as is always
// what is no pipe.
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
