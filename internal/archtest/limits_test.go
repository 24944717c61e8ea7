package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// sources are the kinds of file that people write and read line by line.
var sources = []string{".go", ".c", ".h", ".sh"}

func TestFileLength(t *testing.T) {
	for _, p := range allPaths(t) {
		if strings.Contains(p, "/testdata/") || !isSource(p) {
			continue
		}
		text := read(t, p)
		if strings.HasPrefix(text, "// Code generated ") {
			continue
		}
		limit := maxFile
		if p == "main.go" {
			limit = maxMain
		}
		lines := strings.Count(text, "\n")
		if lines > limit && longFiles[p] == "" {
			t.Errorf("%s: %d lines; a file has at most %d.\n\tDo: split it by what it is about, or give a reason in longFiles.", p, lines, limit)
		}
		if lines <= limit && longFiles[p] != "" {
			t.Errorf("%s: no longer long: strike it from longFiles", p)
		}
	}
	for p := range longFiles {
		if read(t, p) == "" {
			t.Errorf("%s: listed in longFiles, but empty", p)
		}
	}
}

// isSource: by extension, or a script.
func isSource(p string) bool {
	for _, ext := range sources {
		if path.Ext(p) == ext {
			return true
		}
	}
	return path.Dir(p) == "scripts"
}

// TestDirectorySize counts the files of a package, tests and generated files aside.
func TestDirectorySize(t *testing.T) {
	files := map[string]int{}
	for _, p := range allPaths(t) {
		if isSource(p) && path.Dir(p) != "scripts" && !strings.HasSuffix(p, "_test.go") && !strings.Contains(p, "/testdata/") &&
			!strings.HasPrefix(read(t, p), "// Code generated ") {
			files[path.Dir(p)]++
		}
	}
	for dir, n := range files {
		if n > maxFiles && largeDirs[dir] == "" {
			t.Errorf("%s: %d files without tests; a directory has at most %d.\n\tDo: make a package of a part that has a name of its own.", dir, n, maxFiles)
		}
	}
	for dir := range largeDirs {
		if files[dir] <= maxFiles {
			t.Errorf("%s: no longer large: strike it from largeDirs", dir)
		}
	}
}

// TestPackagesHaveTests: the tests of a package stand in its directory. Packages that only tests import are tried by
// these.
func TestPackagesHaveTests(t *testing.T) {
	lines, tested, helper := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, f := range allFiles(t) {
		switch text := read(t, f.path); {
		case f.test:
			tested[f.dir] = true
		case !strings.HasPrefix(text, "// Code generated "):
			lines[f.dir] += strings.Count(text, "\n")
			helper[f.dir] = f.Name.Name != "main"
		}
	}
	for more := true; more; { // a helper may import another
		more = false
		for dir := range lines {
			for p := range imports(t, dir) {
				if helper[p] && !helper[dir] {
					helper[p], more = false, true
				}
			}
		}
	}
	for dir, n := range lines {
		if n > maxUntested && !tested[dir] && !helper[dir] {
			t.Errorf("%s: %d lines, and no test in the directory.\n\tDo: move the tests of the package to it, or write a table for a pure part of it.", dir, n)
		}
	}
}

// TestFunctionLimits bounds lines, cyclomatic complexity and parameters. Functions of tests are bounded in lines
// alone, of which tables do not count.
func TestFunctionLimits(t *testing.T) {
	needed := map[string]bool{}
	for _, f := range allFiles(t) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := f.dir + "." + funcName(fn)
			over := func(n, limit int, exceptions map[string]string, what, do string) {
				if n <= limit {
					return
				}
				if needed[what+name] = true; exceptions[name] == "" {
					t.Errorf("%s: %s has %d %s; a function has at most %d.\n\tDo: %s.", at(fn.Pos()), funcName(fn), n, what, limit, do)
				}
			}
			lines := span(fn)
			if f.test {
				lines -= literalLines(fn)
			}
			over(lines, maxFunction, largeFunctions, "lines", "name its parts")
			if !f.test {
				over(complexity(fn), maxComplexity, complexFunctions, "branches", "make a table of the cases, or name the parts")
				over(fn.Type.Params.NumFields(), maxParameters, manyParameters, "parameters", "take a struct")
			}
		}
	}
	for what, exceptions := range map[string]map[string]string{"lines": largeFunctions, "branches": complexFunctions, "parameters": manyParameters} {
		for name := range exceptions {
			if !needed[what+name] {
				t.Errorf("%s: within the limit of %s: strike it", name, what)
			}
		}
	}
}

// funcName is Name, or Type.Name of a method.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// complexity is the cyclomatic complexity, function literals included.
func complexity(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil { // default
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func span(n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

// literalLines counts the lines inside a function's outermost composite literals.
func literalLines(fn *ast.FuncDecl) int {
	n := 0
	ast.Inspect(fn, func(node ast.Node) bool {
		if lit, ok := node.(*ast.CompositeLit); ok {
			n += span(lit) - 1
			return false
		}
		return true
	})
	return n
}

func TestInitFunctions(t *testing.T) {
	for _, f := range allFiles(t) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.Name == "init" && f.path != "main.go" && !within(f.dir, reexec) && !within(f.dir, programs) && allowedInits[f.path] == "" {
				t.Errorf("%s: init() belongs to main.go and the re-exec entry points.\n\tWhy: every process of podrun, each container's start included, pays for it before main.\n\tDo: a function that somebody calls, or sync.OnceValue.", at(fn.Pos()))
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	described := map[string]bool{}
	for _, f := range allFiles(t) {
		if f.test {
			continue
		}
		if f.Doc != nil {
			text := f.Doc.Text()
			good := strings.HasPrefix(text, "Package "+f.Name.Name+" ") || f.Name.Name == "main" && strings.HasPrefix(text, "Command ")
			if !good {
				t.Errorf("%s: the package comment starts with \"Package %s …\" (a program's with \"Command …\")", f.path, f.Name.Name)
			}
			described[f.dir] = true
		} else if !described[f.dir] {
			described[f.dir] = false
		}
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("%s: no file has a package comment.\n\tDo: say above `package` what lives here and what does not.", dir)
		}
	}
}

func TestExportedComments(t *testing.T) {
	for _, f := range allFiles(t) {
		if f.test || f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && !isInterfaceMethod(d) {
					t.Errorf("%s: %s has no comment: say what it takes and gives, units, errors", at(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if ok && spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
						t.Errorf("%s: type %s has no comment", at(spec.Pos()), spec.Name.Name)
					}
				}
			}
		}
	}
}

// isInterfaceMethod reports whether a method implements an interface, or is of an unexported type.
func isInterfaceMethod(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return false
	}
	switch fn.Name.Name {
	case "Error", "Unwrap", "Is", "String", "Len", "Less", "Swap", "Read", "Write", "Close":
		return true
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && !id.IsExported()
}
