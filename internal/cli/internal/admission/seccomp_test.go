package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeccompProfiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.json")
	for path, text := range map[string]string{
		filepath.Join(dir, "deep/own.json"): `{"defaultAction": "SCMP_ACT_ALLOW"}`,
		filepath.Join(dir, "bad.json"):      `{"defaultAction"`,
		filepath.Join(dir, "none.json"):     `{}`,
		filepath.Join(dir, "large.json"):    strings.Repeat(" ", maxProfile+1),
		secret:                              `{"defaultAction": "SCMP_ACT_ALLOW"}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "out.json")); err != nil {
		t.Fatal(err)
	}
	got, err := SeccompProfiles(dir, []string{"deep/own.json"})
	if err != nil || string(got["deep/own.json"]) != `{"defaultAction": "SCMP_ACT_ALLOW"}` {
		t.Errorf("a profile: %s, %v", got, err)
	}
	for name, want := range map[string]string{
		"bad.json": "unexpected end", "none.json": "no defaultAction", "large.json": "more than", "gone.json": "no such file",
		"out.json": "escapes", "deep": "not a file",
	} {
		if _, err := SeccompProfiles(dir, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
