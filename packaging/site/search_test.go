package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSearch opens a page from a file in a browser, with words to search: the sections that have all of them are
// listed, the one with the words in its heading first, and text of a page is no HTML.
func TestSearch(t *testing.T) {
	top, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"README.md":   "# podrun\nruns pods",
		"docs/one.md": "# One\nIt begins.\n\n## Ports of pods\nA hostPort opens `<img src=x>` one.\n\n## Other\nnothing",
		"docs/two.md": "# Two\nEvery pod may have ports, or a hostPort, and <b>more</b>.",
	} {
		if err := (&site{out: top}).writeFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := makeSite(top, out); err != nil {
		t.Fatal(err)
	}
	dump := func(query string) string {
		t.Helper()
		cmd := exec.Command("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=5000", "--dump-dom", "file://"+filepath.Join(out, "docs/two.html")+"?q="+query)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, found, _ := strings.Cut(string(text), `<div id="search">`)
		found, _, _ = strings.Cut(found, "</div>")
		return found
	}
	found := dump("ports+hostport")
	first, second := strings.Index(found, `href="../docs/one.html#ports-of-pods">One: Ports of pods</a>`), strings.Index(found, `href="../docs/two.html#two">Two</a>`)
	if first < 0 || second < first || strings.Count(found, "<li>") != 2 {
		t.Errorf("the sections with both words are not listed in order:\n%s", found)
	}
	if !strings.Contains(found, "&lt;img src=x&gt;") {
		t.Errorf("there is no text of the section:\n%s", found)
	}
	if found := dump("nosuchword"); !strings.Contains(found, "Nothing has all of these words.") {
		t.Errorf("%s", found)
	}
}
