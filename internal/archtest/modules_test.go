package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// TestDirectModules: go.mod marks as indirect what no file of the module imports, and nothing
// else. `go mod tidy -diff` needs modules that nothing here builds, so it cannot run everywhere.
func TestDirectModules(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\s*(?:require )?([a-z0-9][^ ]*/[^ ]+) v[^ ]+( // indirect)?$`)
	indirect := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		indirect[m[1]] = m[2] != ""
	}
	if len(indirect) < 20 {
		t.Fatalf("found only %d modules in go.mod", len(indirect))
	}
	importer := map[string]string{}
	for _, f := range allFiles(t) {
		if f.dir == "internal/manifest/oracle" || within(f.dir, "packaging") { // modules of their own
			continue
		}
		for _, p := range f.imported() {
			best := ""
			for mod := range indirect {
				if within(p, mod) && len(mod) > len(best) {
					best = mod
				}
			}
			if best == "" && !isStandard(p) && !within(p, modulePath) {
				t.Errorf("%s imports %s, which no module of go.mod has", f.path, p)
			}
			importer[best] = f.path
		}
	}
	for mod, marked := range indirect {
		switch by := importer[mod]; {
		case by != "" && marked:
			t.Errorf("go.mod marks %s as indirect, and %s imports it.\n\tDo: move it to the first require, without the comment.", mod, by)
		case by == "" && !marked && !strings.HasSuffix(mod, "/toolchain"):
			t.Errorf("go.mod does not mark %s as indirect, and nothing imports it.\n\tDo: remove it, or add // indirect.", mod)
		}
	}
}
