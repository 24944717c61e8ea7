package archtest

import (
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryDirectoryIsListed(t *testing.T) {
	for _, f := range allFiles(t) {
		if _, ok := entryOf(f.dir); !ok {
			t.Errorf("%s: the directory %s is not in the layout.\n\tDo: put the file into a listed directory, or list this one in layout_table_test.go with its imports and the reason.", f.path, f.dir)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := entryOf(e.Name()); e.IsDir() && !ok && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s/: the root has no such directory: if it is to stay, list it in layout_test.go", e.Name())
		}
	}
}

// imports are what a directory imports: its code, and its tests alone, with a place of each.
func imports(t *testing.T, dir string) (code, tests map[string]token.Pos) {
	t.Helper()
	code, tests = map[string]token.Pos{}, map[string]token.Pos{}
	for _, f := range allFiles(t) {
		if f.dir != dir {
			continue
		}
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if !within(p, modulePath) {
				continue
			}
			p = path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, modulePath), "/"))
			if f.test {
				tests[p] = spec.Pos()
			} else {
				code[p] = spec.Pos()
			}
		}
	}
	return code, tests
}

func TestImports(t *testing.T) {
	for _, d := range directories {
		if d.why == "" || strings.HasSuffix(d.why, "?") {
			t.Errorf("layout_table_test.go: %s has no reason", d.dir)
		}
		code, tests := imports(t, d.dir)
		for p, pos := range code {
			if p != d.dir && !slices.Contains(d.imports, p) {
				t.Errorf("%s: %s may not import %s.\n\tWhy: %s.\n\tDo: take a value of your own and let the caller fill it; it may import %s.",
					at(pos), d.dir, p, d.why, listOrNone(d.imports))
			}
		}
		for p, pos := range tests {
			if _, ok := code[p]; !ok && p != d.dir && !slices.Contains(d.tests, p) && !slices.Contains(testHelpers, p) {
				t.Errorf("%s: tests of %s may not import %s.\n\tDo: list it in layout_table_test.go if there is no other way.", at(pos), d.dir, p)
			}
		}
		for _, p := range d.imports {
			if _, ok := code[p]; !ok {
				t.Errorf("layout_table_test.go: %s does not import %s: strike it", d.dir, p)
			}
		}
		for _, p := range d.tests {
			if _, ok := tests[p]; !ok {
				t.Errorf("layout_table_test.go: tests of %s do not import %s: strike it", d.dir, p)
			}
		}
	}
}

// TestLayersPointDown: no import goes to a higher layer, to a directory above its own, or between packages
// of a flat layer.
func TestLayersPointDown(t *testing.T) {
	for _, d := range directories {
		from := layerOf(d.dir)
		if from < 0 {
			t.Errorf("layout_test.go: %s has no layer", d.dir)
			continue
		}
		for _, p := range d.imports {
			switch to := layerOf(p); {
			case to < 0: // reported above
			case to < from:
				t.Errorf("%s imports %s, which is higher: %q above %q.\n\tDo: move what both need down.", d.dir, p, layers[to].name, layers[from].name)
			case to == from && layers[to].flat:
				t.Errorf("%s imports %s beside it: packages of the layer %q do not import each other.\n\tDo: move what both need down.", d.dir, p, layers[to].name)
			case p != "internal/pod" && strings.HasPrefix(d.dir, p+"/"):
				t.Errorf("%s imports %s, the directory above it.\n\tDo: let the upper one call the lower one.", d.dir, p)
			}
		}
	}
}

// TestNoCircles is for the table alone: what compiles has none, but a table may be wrong for files of other
// build tags.
func TestNoCircles(t *testing.T) {
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(dir string, way []string)
	visit = func(dir string, way []string) {
		switch state[dir] {
		case 1:
			t.Errorf("a circle of imports: %s", strings.Join(append(way, dir), " → "))
			return
		case 2:
			return
		}
		state[dir] = 1
		if d, ok := entryOf(dir); ok {
			for _, p := range d.imports {
				visit(p, append(way, dir))
			}
		}
		state[dir] = 2
	}
	for _, d := range directories {
		visit(d.dir, nil)
	}
}

var cInclude = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

// TestCIncludes: a C file includes headers of its own directory and of directories that its package imports.
func TestCIncludes(t *testing.T) {
	for _, p := range allPaths(t) {
		if ext := path.Ext(p); ext != ".c" && ext != ".h" || strings.Contains(p, "/testdata/") {
			continue
		}
		dir := path.Dir(p)
		for _, m := range cInclude.FindAllStringSubmatch(read(t, p), -1) {
			header := path.Join(dir, m[1])
			d, _ := entryOf(packageDir(dir))
			if path.Dir(header) != dir && !slices.Contains(d.imports, path.Dir(header)) {
				t.Errorf("%s: includes %s: list %s in the imports of %s", p, header, path.Dir(header), d.dir)
			}
		}
	}
}

// packageDir is the directory with Go files that a directory of C files belongs to.
func packageDir(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := entryOf(dir); ok {
			return dir
		}
	}
	return "."
}

func TestModules(t *testing.T) {
	imported := map[string]bool{}
	for _, f := range allFiles(t) {
		d, _ := entryOf(f.dir)
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if within(p, modulePath) || isStandard(p) || p == "C" {
				continue
			}
			if f.test && slices.ContainsFunc(testModules, func(l string) bool { return within(p, l) }) {
				continue
			}
			m, ok := moduleOf(p)
			imported[m.prefix+" in "+f.dir] = true
			switch {
			case !ok:
				t.Errorf("%s: %s is no module of this project.\n\tDo: use the standard library, or list it in layout_table_test.go with its directory and the reason.", at(spec.Pos()), p)
			case slices.Contains(m.dirs, f.dir) || slices.Contains(m.dirs, everywhere) && !d.pure:
			default:
				t.Errorf("%s: %s is used by %s, not by %s.\n\tWhy: %s.\n\tDo: call one of those packages.", at(spec.Pos()), p, strings.Join(m.dirs, ", "), f.dir, m.why)
			}
		}
	}
	for _, m := range modules {
		for _, dir := range m.dirs {
			if dir != everywhere && !imported[m.prefix+" in "+dir] {
				t.Errorf("layout_table_test.go: %s does not import %s: strike it", dir, m.prefix)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	for p := range pureFiles {
		if !slices.Contains(allPaths(t), p) {
			t.Errorf("layout_test.go: there is no %s: strike it from pureFiles", p)
		}
	}
	for _, f := range allFiles(t) {
		d, _ := entryOf(f.dir)
		why, pure := d.why, d.pure
		if w, ok := pureFiles[f.path]; ok {
			why, pure = w, true
		}
		if !pure || f.test {
			continue
		}
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(impure, func(i string) bool { return p == i || i != "log" && within(p, i) && p != "net/netip" && p != "net/url" }) {
				t.Errorf("%s: a pure package may not import %s.\n\tWhy: %s.\n\tDo: take what you need as an argument.", at(spec.Pos()), p, why)
			}
		}
		f.calls(func(pos token.Pos, pkg, name string) {
			if slices.Contains(impureCalls[pkg], name) {
				t.Errorf("%s: a pure package may not call %s.%s.\n\tWhy: %s.\n\tDo: take the time or the path as an argument.", at(pos), pkg, name, why)
			}
		})
	}
}

func TestSupervisorDeps(t *testing.T) {
	checkDeps(t, "the supervisor program", supervisorProgram, modulePath+"/runner", notInSupervisor)
}

func TestCLIDeps(t *testing.T) {
	checkDeps(t, "the CLI", "internal/cli", modulePath+"/image", notInCLI, "-e", "-tags", buildTags(t)+",embedprograms")
}

func TestFastPathDeps(t *testing.T) {
	checkDeps(t, "the fast path", fastPathProgram, modulePath+"/internal/wire", notInFastPath)
}

// checkDeps reports what a program links of what it must not. It does link known.
func checkDeps(t *testing.T, what, dir, known string, notIn []module, flags ...string) {
	t.Helper()
	cmd := exec.Command("go", slices.Concat([]string{"list", "-deps", "-tags", buildTags(t)}, flags, []string{"./" + dir})...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list what %s links: %v", what, err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, known) {
		t.Fatalf("%s does not link %s: the wrong program (%d packages)", what, known, len(deps))
	}
	for _, l := range notIn {
		var found []string
		for _, d := range deps {
			if within(d, l.prefix) && !slices.Contains(allowedAnywhere, d) && !within(d, modulePath+"/"+dir) && !within(d, modulePath+"/internal/cli/internal") && (!within(d, modulePath) || within(l.prefix, modulePath)) {
				found = append(found, d)
			}
		}
		if len(found) > 0 {
			t.Errorf("%s links %s (%d packages of %s).\n\tWhy not: %s.\n\tDo: `go mod why` names the imports; cut one.", what, found[0], len(found), l.prefix, l.why)
		}
	}
}

func moduleOf(p string) (module, bool) {
	var best module
	for _, m := range modules {
		if within(p, m.prefix) && len(m.prefix) > len(best.prefix) {
			best = m
		}
	}
	return best, best.prefix != ""
}

// isStandard: the first element of a third-party path is a host name.
func isStandard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func entryOf(dir string) (directory, bool) {
	i := slices.IndexFunc(directories, func(d directory) bool { return d.dir == dir })
	if i < 0 {
		return directory{}, false
	}
	return directories[i], true
}

// layerOf is the number of the layer of a directory, or -1.
func layerOf(dir string) int {
	best, layer := 0, -1
	for i, l := range layers {
		for _, pattern := range l.dirs {
			prefix, below := strings.CutSuffix(pattern, "/*")
			if (dir == pattern || below && strings.HasPrefix(dir, prefix+"/")) && len(pattern) > best {
				best, layer = len(pattern), i
			}
		}
	}
	return layer
}

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "no other package"
	}
	return strings.Join(list, ", ")
}
