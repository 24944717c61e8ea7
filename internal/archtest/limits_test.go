package archtest

import (
	"go/ast"
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

func TestFunctionLimits(t *testing.T) {
	for _, f := range allFiles(t) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			lines := span(fn)
			if f.test {
				lines -= literalLines(fn)
			}
			if lines > maxFunction {
				t.Errorf("%s: %s has %d lines; a function has at most %d (a test's tables do not count).\n\tDo: name its parts.", at(fn.Pos()), fn.Name.Name, lines, maxFunction)
			}
		}
	}
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
			if ok && fn.Recv == nil && fn.Name.Name == "init" && f.path != "main.go" && !within(f.dir, "internal/reexec") && allowedInits[f.path] == "" {
				t.Errorf("%s: init() belongs to main.go and internal/reexec.\n\tWhy: every process of podrun, each container's start included, pays for it before main.\n\tDo: a function that somebody calls, or sync.OnceValue.", at(fn.Pos()))
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

// isInterfaceMethod: methods whose meaning is their interface's, or whose type nobody sees.
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
