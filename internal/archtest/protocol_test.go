package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// protocolNames are the forms of names that only internal/protocol may spell: environment variables and hidden
// arguments.
var protocolNames = regexp.MustCompile(`_PODRUN_[A-Z]|^"_[a-z]+(-[a-z]+)*"$`)

// TestProtocolNames: a name or a descriptor on which two processes agree stands in internal/protocol only. Tests
// may spell them.
func TestProtocolNames(t *testing.T) {
	for _, f := range allFiles(t) {
		if f.test || within(f.dir, "internal/protocol") || within(f.dir, "internal/testenv") || within(f.dir, "test") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING && protocolNames.MatchString(n.Value) {
					t.Errorf("%s: %s is a name of internal/protocol", at(n.Pos()), n.Value)
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "NewFile" || len(n.Args) == 0 {
					return true
				}
				if fd, ok := n.Args[0].(*ast.BasicLit); ok {
					t.Errorf("%s: descriptor %s is a number of internal/protocol", at(n.Pos()), fd.Value)
				}
			}
			return true
		})
	}
	for _, p := range allPaths(t) {
		if ext := path.Ext(p); ext != ".c" && ext != ".h" || path.Base(p) == "protocol.h" || strings.Contains(p, "testdata/") {
			continue
		}
		if name := regexp.MustCompile(`"_PODRUN_\w+"`).FindString(read(t, p)); name != "" {
			t.Errorf("%s: %s is a name of internal/protocol", p, name)
		}
	}
}
