package compose

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

func TestProjectName(t *testing.T) {
	for dir, want := range map[string]string{"/src/shop": "shop", "/src/My Shop_2.0": "myshop_20", "/src/__x-y": "x-y", "/": "", "/src/ü": ""} {
		if got := ProjectName(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// TestPresent: a file of the directory or above it, or a variable, which .env may set.
func TestPresent(t *testing.T) {
	vars := map[string]string{}
	env := &cmdutil.Env{Getenv: func(name string) string { return vars[name] }}
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, dir string, want bool) {
		if got := Present(env, dir); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	check("nothing", below, false)
	write(".env", "X=1\nCOMPOSE_FILE=a.yaml\n")
	check("a variable of .env", dir, true)
	check(".env of a directory above", below, false)
	vars["COMPOSE_FILE"] = "a.yaml"
	check("a variable", below, true)
	vars = nil
	write("docker-compose.yml", "")
	check("a file above", below, true)
}
