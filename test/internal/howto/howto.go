// Package howto reads pages of the documentation whose commands tests run.
package howto

import (
	"os"
	"strings"
	"testing"
)

// A Block is a fenced block of a page: commands, or a file.
type Block struct {
	Where   string // the place that the line before the block names
	Section string // the heading of the third level above the block, or ""
	Lines   []string
}

// Text returns the lines of the block.
func (b Block) Text() string { return strings.Join(b.Lines, "\n") + "\n" }

// Read returns the blocks of a page. The line before a block begins with one of the keys of places, whose value is where
// the block belongs.
func Read(t testing.TB, path string, places map[string]string) (blocks []Block) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section, before := "", ""
	var b *Block
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```") && b == nil:
			b = &Block{Section: section}
			for start, where := range places {
				if strings.HasPrefix(before, start) {
					b.Where = where
				}
			}
			if b.Where == "" {
				t.Fatalf("%s: the line before a block is %q", path, before)
			}
		case strings.HasPrefix(line, "```"):
			blocks = append(blocks, *b)
			b = nil
		case b != nil:
			b.Lines = append(b.Lines, line)
		case strings.HasPrefix(line, "## "):
			section = ""
		case strings.HasPrefix(line, "### "):
			section = strings.TrimPrefix(line, "### ")
		case line != "":
			before = line
		}
	}
	return blocks
}
