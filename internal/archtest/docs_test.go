package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([a-zA-Z0-9_./-]+)`")
	link     = regexp.MustCompile(`\]\(([^)#:]+)[)#]`)
	bareFile = regexp.MustCompile(`^[a-zA-Z0-9_.-]+\.(go|c|h|txtar)$`)
	goName   = regexp.MustCompile("`([a-z]+)\\.([A-Z][a-zA-Z0-9]*)[`.(]")
)

// TestDocumentsNameExistingFiles: a path of the repository or the name of a source file in backquotes, and what a link leads
// to, exist. Capital letters stand for a part of a path that the reader chooses.
func TestDocumentsNameExistingFiles(t *testing.T) {
	exists := func(p string) bool {
		_, err := os.Stat(filepath.Join(root, p))
		return err == nil
	}
	placeholder := regexp.MustCompile(`\b[A-Z]{4,}\b`)
	for _, p := range allPaths(t) {
		if !isDocument(p) {
			continue
		}
		text := read(t, p)
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			first, _, below := strings.Cut(m[1], "/")
			if _, listed := entryOf(first); below && (listed || slices.Contains(topLevel, first)) && first != "bin" && !placeholder.MatchString(m[1]) &&
				!exists(strings.TrimSuffix(m[1], "...")) && !exists(path.Join(path.Dir(p), m[1])) {
				t.Errorf("%s: there is no %s", p, m[1])
			}
			if bareFile.MatchString(m[1]) && !slices.ContainsFunc(allPaths(t), func(file string) bool { return path.Base(file) == m[1] }) {
				t.Errorf("%s: no directory has a file %s", p, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if !exists(path.Join(path.Dir(p), m[1])) {
				t.Errorf("%s: a link leads to %s, which does not exist", p, m[1])
			}
		}
	}
}

func isDocument(p string) bool { return path.Ext(p) == ".md" && !strings.HasPrefix(p, "changelog/") }

// TestDocumentsNameExistingDeclarations: what a document calls `package.Name` is declared in the package, unless the package is
// of the standard library or of a module.
func TestDocumentsNameExistingDeclarations(t *testing.T) {
	declared := map[string]map[string]bool{} // by the package's name
	for _, f := range allFiles(t) {
		if declared[f.Name.Name] == nil {
			declared[f.Name.Name] = map[string]bool{}
		}
		for name := range exported(f) {
			declared[f.Name.Name][name.Name] = true
		}
	}
	for _, p := range allPaths(t) {
		if !isDocument(p) {
			continue
		}
		for _, m := range goName.FindAllStringSubmatch(read(t, p), -1) {
			if names := declared[m[1]]; names != nil && !names[m[2]] && foreignNames[m[1]+"."+m[2]] == "" {
				t.Errorf("%s: there is no %s.%s", p, m[1], m[2])
			}
		}
	}
}

// TestContributingIsShort: a stranger reads it before the first change.
func TestContributingIsShort(t *testing.T) {
	if n := len(read(t, "CONTRIBUTING.md")); n > 10_000 {
		t.Errorf("CONTRIBUTING.md has %d bytes, more than 10,000: move tables to docs/reference", n)
	}
}

// foreignNames are declarations of modules whose packages have names of podrun's packages.
var foreignNames = map[string]string{
	"unit.Serialize":      "github.com/coreos/go-systemd",
	"unit.Deserialize":    "github.com/coreos/go-systemd",
	"unit.UnitNameEscape": "github.com/coreos/go-systemd",
}

// TestTroubleshootingMessages: the headings of the page about messages stand in the code.
func TestTroubleshootingMessages(t *testing.T) {
	const page = "docs/how-to/troubleshooting.md"
	headings := regexp.MustCompile("(?m)^## `(.*)`$").FindAllStringSubmatch(read(t, page), -1)
	if len(headings) < 20 {
		t.Fatalf("%s has %d messages", page, len(headings))
	}
	var code strings.Builder
	for _, p := range allPaths(t) {
		if strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") {
			code.WriteString(read(t, p))
		}
	}
	for _, m := range headings {
		if !strings.Contains(code.String(), m[1]) {
			t.Errorf("%s: no message contains %q", page, m[1])
		}
	}
}
