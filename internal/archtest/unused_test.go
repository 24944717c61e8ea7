package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"testing"
)

// TestExportedNamesAreUsed lists exported names that nothing uses: functions, types, variables and
// constants by their package, methods by their names alone. What only its own declaration has is
// dead.
func TestExportedNamesAreUsed(t *testing.T) {
	uses := map[string]bool{}     // pkg.Name
	selected := map[string]bool{} // .Name, whatever it is of
	declared := map[*ast.Ident]bool{}
	for _, f := range allFiles(t) {
		for name := range exported(f) {
			declared[name] = true
		}
	}
	for _, f := range allFiles(t) {
		f.calls(func(_ token.Pos, pkg, name string) {
			if within(pkg, modulePath) {
				uses[pkg[min(len(pkg), len(modulePath)+1):]+"."+name] = true
			}
		})
		ast.Inspect(f.File, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() && !declared[id] {
				uses[f.dir+"."+id.Name], selected[id.Name] = true, true
			}
			return true
		})
	}
	for _, f := range allFiles(t) {
		if f.test || f.Name.Name == "main" || f.dir == "internal/protocol" { // C uses some; TestUsed there
			continue
		}
		for name, method := range exported(f) {
			if method && !selected[name.Name] || !method && !uses[f.dir+"."+name.Name] {
				t.Errorf("%s: nothing uses %s of %s.\n\tDo: remove it.", at(name.Pos()), name.Name, path.Base(f.dir))
			}
		}
	}
}

// TestExportedNamesAreNeeded lists exported functions and variables that only their own package uses.
// Types and constants may be exported for the sake of what has them.
func TestExportedNamesAreNeeded(t *testing.T) {
	used := map[string]bool{} // DIR.Name, by another directory or by tests from outside
	for _, f := range allFiles(t) {
		f.calls(func(_ token.Pos, pkg, name string) {
			if dir := pkg[min(len(pkg), len(modulePath)+1):]; within(pkg, modulePath) && (dir != f.dir || f.test) {
				used[dir+"."+name] = true
			}
		})
	}
	for _, f := range allFiles(t) {
		if f.test || f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			var names []*ast.Ident
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names = append(names, d.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						names = append(names, v.Names...)
					}
				}
			}
			for _, id := range names {
				if id.IsExported() && !used[f.dir+"."+id.Name] {
					t.Errorf("%s: only its own package uses %s.\n\tDo: begin it with a small letter.", at(id.Pos()), id.Name)
				}
			}
		}
	}
}

// exported are the exported names that a file declares, and whether each is a method.
func exported(f *goFile) map[*ast.Ident]bool {
	names := map[*ast.Ident]bool{}
	add := func(id *ast.Ident, method bool) {
		if id.IsExported() {
			names[id] = method
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !isInterfaceMethod(d) {
				add(d.Name, d.Recv != nil)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name, false)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id, false)
					}
				}
			}
		}
	}
	return names
}
