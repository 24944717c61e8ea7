// Package howto reads pages of the documentation whose commands tests run.
package howto

import (
	"os"
	"strings"
	"testing"
)

// FleetPage is the page from one box to a cluster. test/script runs its commands for boxes, test/cluster its commands for the cluster.
const FleetPage = "../../docs/how-to/from-one-box-to-a-hundred.md"

// ReadFleet returns the blocks of FleetPage.
func ReadFleet(t testing.TB) []Block {
	t.Helper()
	return Read(t, FleetPage, map[string]string{
		"On the workstation:": "workstation", "On each box:": "box", "On a canary:": "canary", "On that box:": "remote", "On each node:": "node",
		"`site/web.yaml`,": "site/web.yaml", "`site/visitor.yaml`,": "site/visitor.yaml", "`user-data`,": "user-data", "It prints:": "output",
		"On the server of the cluster:": "cluster", "`flux.yaml`,": "flux.yaml", "On the server with Prometheus:": "prometheus",
	})
}

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
