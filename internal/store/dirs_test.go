package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

// A user who can write to the directory above podrun's own can replace it, and so can the owner of
// a link on the way to it.
func TestTrustedLooksAtTheDirectoryAbove(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	if err := os.Mkdir(above, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(above, "podrun")
	if err := makePrivate(dir); err != nil {
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

// UserDirs creates nothing where others can write or where another user's link leads: in /tmp any
// user may have created the directory above podrun's own.
func TestPrivateLooksBeforeItMakes(t *testing.T) {
	top := t.TempDir()
	elsewhere := filepath.Join(top, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		above string
		make  func(above string) error
		want  bool
		root  bool // root must accept it
	}{
		"own":         {above: "own", make: func(p string) error { return os.Mkdir(p, 0o700) }, want: true},
		"nothing yet": {above: "a/b/c", make: func(string) error { return nil }, want: true},
		"own link":    {above: "link", make: func(p string) error { return os.Symlink(elsewhere, p) }, want: true},
		"open to all": {above: "open", make: func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777)) }},
		"below open to all": {above: "wide/b/c", make: func(p string) error {
			p = filepath.Join(top, "wide")
			return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777))
		}},
		"link to open": {above: "toopen", make: func(p string) error {
			o := p + ".d"
			return errors.Join(os.Mkdir(o, 0o700), os.Chmod(o, 0o777), os.Symlink(o, p))
		}},
		"link to nowhere": {above: "dangling", make: func(p string) error { return os.Symlink(filepath.Join(elsewhere, "new"), p) }},
		"another's":       {above: "foreign", root: true, make: func(p string) error { return errors.Join(os.Mkdir(p, 0o755), os.Chown(p, 12345, 12345)) }},
		"another's link":  {above: "theirs", root: true, make: func(p string) error { return errors.Join(os.Symlink(elsewhere, p), os.Lchown(p, 12345, 12345)) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				return // only root can create files of others; the other cases test the order
			}
			above := filepath.Join(top, c.above)
			if err := c.make(above); err != nil {
				t.Fatal(err)
			}
			err := makePrivate(filepath.Join(above, "podrun"))
			if (err == nil) != c.want || err != nil && report.Hint(err) == "" {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(filepath.Join(above, "podrun")); (err == nil) != c.want {
				t.Errorf("it is there: %t", err == nil)
			}
			for _, made := range []string{above, filepath.Join(top, "wide/b"), filepath.Join(elsewhere, "new")} {
				if _, err := os.Stat(made); err == nil && !c.want && made != above {
					t.Errorf("%s was made", made)
				}
			}
			os.Remove(filepath.Join(above, "podrun")) // the link's case is the same as others'
		})
	}
}
