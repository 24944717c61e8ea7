package policy

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPolicyFile: the user's file has precedence over the machine's, and the file that the variable names over both.
func TestPolicyFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	user := filepath.Join(home, ".config/containers/policy.json")
	if err := os.MkdirAll(filepath.Dir(user), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(user, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ variable, want string }{{"", user}, {"/nonexistent", "/nonexistent"}} {
		t.Setenv("CONTAINERS_POLICY_JSON", tt.variable)
		if got, err := findPolicy(); err != nil || got != tt.want {
			t.Errorf("%q, %v, want %q", got, err, tt.want)
		}
	}
}
