package system_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/testenv"
)

// TestManualPages checks that every command has a manual page that mandoc accepts and that contains the text
// of --help.
func TestManualPages(t *testing.T) {
	testenv.Need(t, func() error {
		_, err := exec.LookPath("mandoc")
		return err
	})
	h := clitest.NewHost(t)
	dir := filepath.Join(t.TempDir(), "man1")
	clitest.CheckResult(t, h.Run("man", "--dir", dir), 0, "", "")
	pages, err := filepath.Glob(filepath.Join(dir, "podrun*.1"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		out, _ := exec.Command("mandoc", "-T", "lint", "-W", "warning", page).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "missing date") { // the same page has the same bytes on every day
				t.Error(line)
			}
		}
	}
	text, err := exec.Command("mandoc", "-T", "ascii", "-O", "width=200", filepath.Join(dir, "podrun-logs.1")).Output()
	if err != nil {
		t.Fatal(err)
	}
	struck := regexp.MustCompile(".\x08") // bold is written twice
	plain := strings.Join(strings.Fields(struck.ReplaceAllString(string(text), "")), " ")
	for _, want := range []string{"podrun-logs - ", "podrun logs [options] ", "-f, --follow", "EXAMPLES"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page of logs has no %q:\n%s", want, plain)
		}
	}
	one, err := os.ReadFile(filepath.Join(dir, "podrun-image-ls.1"))
	if err != nil {
		t.Fatal(err)
	}
	clitest.CheckResult(t, h.Run("man", "image", "ls"), 0, string(one), "")
	clitest.CheckResult(t, h.Run("man", "imag"), 2, "", "podrun: \"imag\" is not a command of podrun\nhint: did you mean podrun image?\n")
}
