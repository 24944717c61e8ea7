package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/systemd"
)

// TestAbsoluteOptions: the unit has another working directory, so paths are made absolute.
func TestAbsoluteOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := absoluteOptions(strings.Fields("--env-file box.env --allow-older --env-file=/etc/all.env --path a/b --report-key ../key --env-file"))
	want := []string{"--env-file", dir + "/box.env", "--allow-older", "--env-file", "/etc/all.env", "--path", "a/b", "--report-key", filepath.Join(dir, "../key"), "--env-file"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := absoluteOptions([]string{"--stable", "1s", "--name=x"}); err == nil || err.Error() != "--name comes before --" {
		t.Errorf("%q, %v", got, err)
	}
	for source, want := range map[string]string{
		"oci://registry.example.org/team/set:1": "oci://registry.example.org/team/set:1",
		"oci:layout:1":                          "oci:" + dir + "/layout:1",
		".":                                     dir,
	} {
		if got, err := absoluteSource(source); got != want || err != nil {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
}

// TestReplacedSource: a unit follows another source only if the user names the set.
func TestReplacedSource(t *testing.T) {
	units := t.TempDir()
	f := systemd.Follow{Name: "set", Source: "oci://registry.example.org/team/set"}
	if err := os.WriteFile(filepath.Join(units, f.ServiceName()), f.ServiceFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, source string
		refused      bool
	}{
		{"", f.Source, false}, {"", "oci://registry.example.org/other/set", true}, {"set", "oci://registry.example.org/other/set", false},
	} {
		o := &installFollowOptions{units: systemd.Follow{Name: "set", Source: tc.source}}
		o.name, o.dirs.Units = tc.name, units
		if err := o.checkReplaced(f.ServiceName()); (err != nil) != tc.refused || err != nil && err.Error() != "podrun-follow-set.service follows "+f.Source {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
