package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

// Who can write to the directory above podrun's own can exchange it, and who owns a link
// on the way to it, too.
func TestTrustedLooksAtTheDirectoryAbove(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	if err := os.Mkdir(above, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(above, "podrun")
	if err := private(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode    os.FileMode
		trusted bool
	}{{0o700, true}, {0o755, true}, {0o775, true}, {0o777, false}, {0o777 | os.ModeSticky, true}} {
		if err := os.Chmod(above, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := Trusted(dir); (err == nil) != c.trusted || err != nil && report.Hint(err) == "" {
			t.Errorf("above is %v: %v", c.mode, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(above, link); err != nil {
		t.Fatal(err)
	}
	if err := Trusted(filepath.Join(link, "podrun")); err != nil {
		t.Errorf("a link of one's own: %v", err)
	}
	if err := os.Chmod(above, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Trusted(filepath.Join(link, "podrun")); err == nil {
		t.Error("a link hides that others can write")
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(link, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(above, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Trusted(filepath.Join(link, "podrun")); err == nil {
			t.Error("another's link was followed")
		}
	}
}
