package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

var fset = token.NewFileSet()

// goFile is one parsed file. Build tags are not looked at: the rules hold for all.
type goFile struct {
	path string // from the root, with slashes
	dir  string
	test bool
	*ast.File
}

// paths lists every file of the project, without what builds leave behind.
var paths = sync.OnceValues(func() ([]string, error) {
	var list []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (rel == ".git" || rel == "bin"):
			return fs.SkipDir
		case rel == ".git": // a file in a worktree
		case d.Type().IsRegular() && !isBuildOutput(rel):
			list = append(list, rel)
		}
		return nil
	})
	return list, err
})

// isBuildOutput reports whether scripts/build makes the file, to be embedded.
func isBuildOutput(rel string) bool {
	return path.Dir(rel) == programs && slices.Contains([]string{".bin", ".zst", ".sum", ".txt"}, path.Ext(rel))
}

var parsed = sync.OnceValues(func() ([]*goFile, error) {
	var files []*goFile
	list, err := paths()
	for _, p := range list {
		if err != nil {
			break
		}
		if path.Ext(p) != ".go" || strings.Contains(p, "/testdata/") {
			continue
		}
		f := &goFile{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go")}
		f.File, err = parser.ParseFile(fset, filepath.Join(root, p), nil, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, f)
	}
	return files, err
})

func allPaths(t *testing.T) []string {
	t.Helper()
	list, err := paths()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func allFiles(t *testing.T) []*goFile {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files under %s: the rules would hold for nothing", len(files), root)
	}
	return files
}

func read(t *testing.T, p string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, p))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// majorVersion matches the last element of a module's path that is no package name.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// imported maps the names that stand for imports in a file to their paths.
func (f *goFile) imported() map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if majorVersion.MatchString(name) {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

// calls reports every use of pkg.name in a file, by import path.
func (f *goFile) calls(found func(pos token.Pos, pkg, name string)) {
	names := f.imported()
	ast.Inspect(f.File, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
				found(sel.Pos(), names[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
}

func at(pos token.Pos) string {
	p := fset.Position(pos)
	return strings.TrimPrefix(filepath.ToSlash(p.Filename), root+"/") + ":" + strconv.Itoa(p.Line)
}

// within reports whether an import path is prefix or below it.
func within(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }
