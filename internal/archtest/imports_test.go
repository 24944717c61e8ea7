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
			t.Errorf("%s: the directory %s is not in the layout.\n\tDo: put the file into a listed directory, or list this one in layout_table_test.go with the reason.", f.path, f.dir)
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

// imports returns the directories that the code of a directory imports, without its tests, with a place of each.
func imports(t *testing.T, dir string) map[string]token.Pos {
	t.Helper()
	list := map[string]token.Pos{}
	for _, f := range allFiles(t) {
		if f.dir != dir || f.test {
			continue
		}
		for _, spec := range f.Imports {
			if p := strings.Trim(spec.Path.Value, `"`); within(p, modulePath) {
				list[path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, modulePath), "/"))] = spec.Pos()
			}
		}
	}
	return list
}

func TestDirectoriesHaveReasons(t *testing.T) {
	for _, d := range directories {
		if d.why == "" || strings.HasSuffix(d.why, "?") {
			t.Errorf("layout_table_test.go: %s has no reason", d.dir)
		}
		if !slices.ContainsFunc(allFiles(t), func(f *goFile) bool { return f.dir == d.dir }) {
			t.Errorf("layout_table_test.go: there is no Go file in %s: strike it", d.dir)
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
		for p, pos := range imports(t, d.dir) {
			switch to := layerOf(p); {
			case to < 0 || p == d.dir: // without a layer: reported above
			case to < from:
				t.Errorf("%s: %s imports %s, which is higher: %q above %q.\n\tDo: move what both need down.", at(pos), d.dir, p, layers[to].name, layers[from].name)
			case to == from && layers[to].flat:
				t.Errorf("%s: %s imports %s beside it: packages of the layer %q do not import each other.\n\tDo: move what both need down.", at(pos), d.dir, p, layers[to].name)
			case p != "internal/pod" && strings.HasPrefix(d.dir, p+"/"):
				t.Errorf("%s: %s imports %s, the directory above it.\n\tDo: let the upper one call the lower one.", at(pos), d.dir, p)
			}
		}
	}
}

// TestKernelPackages: volumes, cgroups and netns know neither pods nor each other.
func TestKernelPackages(t *testing.T) {
	kernel := []string{"volumes", "cgroups", "netns"}
	for _, d := range directories {
		i := slices.IndexFunc(kernel, func(k string) bool { return within(d.dir, k) })
		for p, pos := range imports(t, d.dir) {
			other := slices.IndexFunc(kernel, func(k string) bool { return within(p, k) })
			if i >= 0 && (p == "internal/pod" || other >= 0 && other != i) {
				t.Errorf("%s: %s imports %s.\n\tDo: take a small struct of its own, and let runner fill it.", at(pos), d.dir, p)
			}
		}
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
			if _, imported := imports(t, packageDir(dir))[path.Dir(header)]; path.Dir(header) != dir && !imported {
				t.Errorf("%s: includes %s, and %s does not import %s", p, header, packageDir(dir), path.Dir(header))
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
			listed := func(pattern string) bool {
				below, all := strings.CutSuffix(pattern, "/*")
				return pattern == f.dir || all && strings.HasPrefix(f.dir, below+"/") || pattern == everywhere && !d.pure
			}
			for _, pattern := range m.dirs {
				if listed(pattern) {
					imported[m.prefix+" in "+pattern] = true
				}
			}
			switch {
			case !ok:
				t.Errorf("%s: %s is no module of this project.\n\tDo: use the standard library, or list it in layout_table_test.go with its directory and the reason.", at(spec.Pos()), p)
			case slices.ContainsFunc(m.dirs, listed):
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

// TestPurePackages: a pure package uses neither the outside world nor a package that does.
func TestPurePackages(t *testing.T) {
	for _, d := range directories {
		for p, pos := range imports(t, d.dir) {
			if below, _ := entryOf(p); d.pure && !below.pure && p != "internal/report" { // it compares errors with numbers of the system
				t.Errorf("%s: %s, a pure package, imports %s, which is none.\n\tWhy: %s.\n\tDo: take a value and let the caller fill it.", at(pos), d.dir, p, d.why)
			}
		}
	}
	for p := range pureFiles {
		if !slices.Contains(allPaths(t), p) {
			t.Errorf("layout_test.go: there is no %s: strike it from pureFiles", p)
		}
	}
	for _, f := range allFiles(t) {
		d, _ := entryOf(f.dir)
		reason, pure := d.why, d.pure
		if w, ok := pureFiles[f.path]; ok {
			reason, pure = w, true
		}
		if !pure || f.test {
			continue
		}
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(impure, func(i string) bool { return p == i || i != "log" && within(p, i) && p != "net/netip" && p != "net/url" }) {
				t.Errorf("%s: a pure package may not import %s.\n\tWhy: %s.\n\tDo: take what you need as an argument.", at(spec.Pos()), p, reason)
			}
		}
		f.calls(func(pos token.Pos, pkg, name string) {
			if slices.Contains(impureCalls[pkg], name) {
				t.Errorf("%s: a pure package may not call %s.%s.\n\tWhy: %s.\n\tDo: take the time or the path as an argument.", at(pos), pkg, name, reason)
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
