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
)

// TestDocumentsNameExistingFiles: a path of the repository in backquotes, and what a link leads to, exist.
// Capital letters stand for a part of a path that the reader chooses.
func TestDocumentsNameExistingFiles(t *testing.T) {
	exists := func(p string) bool {
		_, err := os.Stat(filepath.Join(root, p))
		return err == nil
	}
	placeholder := regexp.MustCompile(`\b[A-Z]{4,}\b`)
	for _, p := range allPaths(t) {
		if path.Ext(p) != ".md" || regexp.MustCompile(`^(changelog/|docs/decisions/[0-9])`).MatchString(p) {
			continue
		}
		text := read(t, p)
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			first, _, below := strings.Cut(m[1], "/")
			if _, listed := entryOf(first); below && (listed || slices.Contains(topLevel, first)) && first != "bin" && !placeholder.MatchString(m[1]) &&
				!exists(strings.TrimSuffix(m[1], "...")) && !exists(path.Join(path.Dir(p), m[1])) {
				t.Errorf("%s: there is no %s", p, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if !exists(path.Join(path.Dir(p), m[1])) {
				t.Errorf("%s: a link leads to %s, which does not exist", p, m[1])
			}
		}
	}
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
