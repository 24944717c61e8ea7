package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocuments: the documents of the repository have no dead link.
func TestDocuments(t *testing.T) {
	out := t.TempDir()
	if _, err := makeSite("../..", out); err != nil {
		t.Fatal(err)
	}
	home, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="docs/reference/commands.html"`, `<title>podrun</title>`} {
		if !strings.Contains(string(home), want) {
			t.Errorf("index.html has no %s", want)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "docs/reference/bench.svg")); err != nil {
		t.Error(err)
	}
}

func TestLinks(t *testing.T) {
	for link, want := range map[string]string{
		"other.md":            `href="other.html"`,
		"other.md#a-heading":  `href="other.html#a-heading"`,
		"#one":                `href="#one"`,
		"../README.md":        `href="../index.html"`,
		"../LICENSE":          `href="` + repository + `LICENSE"`,
		"https://example.org": `href="https://example.org"`,
		"nosuch.md":           "docs/one.md: the link nosuch.md is dead: there is no such file",
		"../../LICENSE":       "docs/one.md: the link ../../LICENSE is dead",
		"other.md#nosuch":     "docs/one.md: the link other.md#nosuch is dead: docs/other.md has no heading #nosuch",
	} {
		t.Run(link, func(t *testing.T) {
			top := t.TempDir()
			for name, text := range map[string]string{"README.md": "# podrun", "LICENSE": "", "docs/one.md": "# One\n[link](" + link + ")", "docs/other.md": "# Other\n## A heading"} {
				s := &site{out: top}
				if err := s.writeFile(name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			out := t.TempDir()
			if _, err := makeSite(top, out); err != nil {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant: %s", err, want)
				}
				return
			}
			text, err := os.ReadFile(filepath.Join(out, "docs/one.html"))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%v: no %s in\n%s", err, want, text)
			}
		})
	}
}
