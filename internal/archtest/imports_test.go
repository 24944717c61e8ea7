package archtest

import (
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestEveryDirectoryIsListed(t *testing.T) {
	for _, f := range allFiles(t) {
		if _, ok := packageOf(f.dir); !ok {
			t.Errorf("%s: the directory %s is no room: put the file into one of %s, or list the new room in law_test.go with what it may import and why",
				f.path, f.dir, strings.Join(layoutDirs(), ", "))
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(topLevel, e.Name()) && !slices.Contains(layoutDirs(), e.Name()) {
			t.Errorf("%s/: the root has no such directory: if it is to stay, list it in law_test.go", e.Name())
		}
	}
}

func TestLayoutHasNoStaleEntries(t *testing.T) {
	imported := map[string]bool{}
	used := map[string]bool{}
	for _, f := range allFiles(t) {
		r, _ := packageOf(f.dir)
		used[r.dir] = true
		for _, spec := range f.Imports {
			if l, ok := moduleOf(strings.Trim(spec.Path.Value, `"`)); ok {
				imported[l.prefix+" in "+r.dir] = true
			}
		}
	}
	for p := range pureFiles {
		if !slices.Contains(allPaths(t), p) {
			t.Errorf("law_test.go: there is no %s: strike it from pureFiles", p)
		}
	}
	for _, r := range layout {
		if !used[r.dir] {
			t.Errorf("law_test.go: there is no room %s: strike it", r.dir)
		}
	}
	for _, l := range modules {
		for _, r := range l.rooms {
			if r != everywhere && !imported[l.prefix+" in "+r] {
				t.Errorf("law_test.go: %s does not import %s: strike it", r, l.prefix)
			}
		}
	}
}

func TestImports(t *testing.T) {
	for _, f := range allFiles(t) {
		r, _ := packageOf(f.dir)
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if !within(p, modulePath) {
				continue
			}
			target, ok := packageOf(strings.TrimPrefix(strings.TrimPrefix(p, modulePath), "/"))
			switch {
			case !ok || target.dir == r.dir || slices.Contains(r.may, target.dir):
			case f.test && slices.Contains(testHelpers, target.dir):
			default:
				t.Errorf("%s: room %s may not import %s.\n\tWhy: %s.\n\tDo: take a value of your own and let the caller fill it; it may import %s.",
					at(spec.Pos()), r.dir, target.dir, r.why, listOrNone(r.may))
			}
		}
	}
}

func TestModules(t *testing.T) {
	for _, f := range allFiles(t) {
		r, _ := packageOf(f.dir)
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if within(p, modulePath) || isStandard(p) || p == "C" {
				continue
			}
			if f.test && slices.ContainsFunc(testModules, func(l string) bool { return within(p, l) }) {
				continue
			}
			l, ok := moduleOf(p)
			switch {
			case !ok:
				t.Errorf("%s: %s is no library of this project.\n\tDo: use the standard library, or list it in law_test.go with its one room and the reason.", at(spec.Pos()), p)
			case slices.Contains(l.rooms, r.dir) || slices.Contains(l.rooms, everywhere) && !r.pure:
			default:
				t.Errorf("%s: %s lives in %s, not in %s.\n\tWhy: %s.\n\tDo: ask that room for what you need.", at(spec.Pos()), p, strings.Join(l.rooms, ", "), r.dir, l.why)
			}
		}
	}
}

func TestPurePackages(t *testing.T) {
	for _, f := range allFiles(t) {
		r, _ := packageOf(f.dir)
		why, pure := r.why, r.pure
		if w, ok := pureFiles[f.path]; ok {
			why, pure = w, true
		}
		if !pure || f.test {
			continue
		}
		for _, spec := range f.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(impure, func(i string) bool { return p == i || i != "log" && within(p, i) && p != "net/netip" && p != "net/url" }) {
				t.Errorf("%s: what is pure may not import %s.\n\tWhy: %s.\n\tDo: take what you need as an argument.", at(spec.Pos()), p, why)
			}
		}
		f.calls(func(pos token.Pos, pkg, name string) {
			if slices.Contains(impureCalls[pkg], name) {
				t.Errorf("%s: what is pure may not use %s.%s.\n\tWhy: %s.\n\tDo: take the time or the path as an argument.", at(pos), pkg, name, why)
			}
		})
	}
}

func TestSupervisorDeps(t *testing.T) {
	checkDeps(t, "the supervisor's program", "internal/programs/supervisor", modulePath+"/runner", notInSupervisor)
}

func TestFastPathDeps(t *testing.T) {
	checkDeps(t, "the quick front", "cli/quick", modulePath+"/internal/wire", notInFastPath)
}

// checkDeps says what a program reaches of what is not in it. It does reach known.
func checkDeps(t *testing.T, what, dir, known string, notIn []module) {
	cmd := exec.Command("go", "list", "-deps", "-tags", buildTags(t), "./"+dir)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list what %s is made of: %v", what, err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, known) {
		t.Fatalf("%s does not reach %s: looked at the wrong thing (%d packages)", what, known, len(deps))
	}
	for _, l := range notIn {
		var found []string
		for _, d := range deps {
			if within(d, l.prefix) && !slices.Contains(allowedAnywhere, d) && !within(d, modulePath+"/"+dir) && !within(d, modulePath+"/cli/internal") && (!within(d, modulePath) || within(l.prefix, modulePath)) {
				found = append(found, d)
			}
		}
		if len(found) > 0 {
			t.Errorf("%s reaches %s (%d packages of %s).\n\tWhy not: %s.\n\tDo: `go mod why` names the way; cut it.", what, found[0], len(found), l.prefix, l.why)
		}
	}
}

func moduleOf(p string) (module, bool) {
	var best module
	for _, l := range modules {
		if within(p, l.prefix) && len(l.prefix) > len(best.prefix) {
			best = l
		}
	}
	return best, best.prefix != ""
}

// isStandard: the first element of a third-party path is a host name.
func isStandard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func layoutDirs() []string {
	var names []string
	for _, r := range layout {
		names = append(names, r.dir)
	}
	return names
}

func listOrNone(may []string) string {
	if len(may) == 0 {
		return "no other room"
	}
	return strings.Join(may, ", ")
}
