package host

import (
	"os"
	"path/filepath"
	"testing"
)

// allows returns each permission of the kernel's answer, and whether a label is permissive.
func TestAllows(t *testing.T) {
	for _, c := range []struct {
		answer     string
		permission int
		want       bool
	}{
		{"2 ffffffff 0 ffffffff 3 0", 2, true},
		{"2 ffffffff 0 ffffffff 3 0", 1, false},
		{"0 ffffffff 0 ffffffff 3 1", 2, true},
		{"80000000 ffffffff 0 ffffffff 3 0", 32, true},
	} {
		if got, err := allows(c.answer, c.permission); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for _, rubbish := range []string{"", "2 ffffffff", "x"} {
		if _, err := allows(rubbish, 2); err == nil {
			t.Errorf("%q is an answer", rubbish)
		}
	}
}

// Processes that gain no privileges may change their label only by a policy that supports this and
// says so.
func TestKnowsNoNewPrivileges(t *testing.T) {
	const says, class = "policy_capabilities/nnp_nosuid_transition", "class/process2/index"
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
		fails bool
	}{
		"an old kernel": {nil, false, false},
		"not asked":     {map[string]string{says: "0", class: "94"}, false, false},
		"no such class": {map[string]string{says: "1"}, false, false},
		"asked":         {map[string]string{says: "1", class: "94"}, true, false},
		"rubbish":       {map[string]string{says: "yes", class: "94"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if knows, err := knowsNoNewPrivileges(dir + "/"); knows != c.want || (err != nil) != c.fails {
				t.Error(knows, err)
			}
		})
	}
}
