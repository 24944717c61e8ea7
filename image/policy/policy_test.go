package policy

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPolicyFile(t *testing.T) {
	home, system := t.TempDir(), filepath.Join(t.TempDir(), "policy.json")
	user := filepath.Join(home, ".config/containers/policy.json")
	for _, tt := range []struct{ made, want string }{{"", ""}, {system, system}, {user, user}} {
		if tt.made != "" {
			if err := os.MkdirAll(filepath.Dir(tt.made), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(tt.made, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := findPolicy(home, system); err != nil || got != tt.want {
			t.Errorf("%q, %v, want %q", got, err, tt.want)
		}
	}
}
