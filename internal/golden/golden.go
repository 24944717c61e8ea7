// Package golden compares a test's result with a file. In the package whose test fails, go test
// -update rewrites the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Updating reports whether -update is given, for a test that compares its files itself.
func Updating() bool { return *update }

// Check fails the test if got differs from the file. With -update it writes the file instead.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what there is now (-file +now); if that is meant, go test -update rewrites it:\n%s", file, diff)
	}
}
