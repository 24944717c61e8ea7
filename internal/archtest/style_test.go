package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestSkipsAreProbed(t *testing.T) {
	for _, f := range allFiles(t) {
		if within(f.dir, "internal/testenv") {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) && f.test {
				t.Errorf("%s: a test is skipped only by internal/testenv.\n\tWhy: it probes for what is missing and says so; a bare skip hides a test that never runs.", at(sel.Pos()))
			}
			return true
		})
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range allFiles(t) {
		if !f.test || slices.Contains(values(f.imported()), "testing/synctest") {
			continue
		}
		polls := pollSteps(f)
		f.calls(func(pos token.Pos, pkg, name string) {
			if pkg != "time" || name != "Sleep" || polls[pos] {
				return
			}
			seen[f.path] = true
			if allowedSleeps[f.path] == "" {
				t.Errorf("%s: a test may not sleep.\n\tWhy: it is too short on a busy machine and too long on every other.\n\tDo: wait for the event itself; where nothing tells of it, ask again and again: for deadline := …; ; time.Sleep(…) {…}.", at(pos))
			}
		})
	}
	for p := range allowedSleeps {
		if !seen[p] {
			t.Errorf("%s: does not sleep: strike it from sleepers", p)
		}
	}
}

// TestContextOfCLI: only Complete reads a command line; what is done with it works on the fields of the command.
func TestContextOfCLI(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range allFiles(t) {
		if f.test {
			continue
		}
		complete := completeParameters(f)
		f.calls(func(pos token.Pos, pkg, name string) {
			if pkg != "github.com/urfave/cli/v2" || name != "Context" || complete[pos] {
				return
			}
			seen[f.dir] = true
			if contextUsers[f.dir] == "" {
				t.Errorf("%s: only the method Complete of a cmdutil.Command takes a cli.Context.\n\tWhy: a command that works on its fields can be read, called and tested without a command line.\n\tDo: read the flags into fields in Complete.", at(pos))
			}
		})
	}
	for dir := range contextUsers {
		if !seen[dir] {
			t.Errorf("layout_test.go: %s uses cli.Context only in Complete: strike it from contextUsers", dir)
		}
	}
}

// completeParameters are the types of the parameters of methods Complete and complete.
func completeParameters(f *goFile) map[token.Pos]bool {
	all := map[token.Pos]bool{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || !strings.EqualFold(fn.Name.Name, "complete") {
			continue
		}
		for _, p := range fn.Type.Params.List {
			if star, ok := p.Type.(*ast.StarExpr); ok {
				all[star.X.Pos()] = true
			}
		}
	}
	return all
}

// pollSteps are the sleeps that step a loop: for deadline := …; ; time.Sleep(…).
func pollSteps(f *goFile) map[token.Pos]bool {
	steps := map[token.Pos]bool{}
	ast.Inspect(f.File, func(n ast.Node) bool {
		loop, ok := n.(*ast.ForStmt)
		if !ok || loop.Init == nil {
			return true
		}
		if step, ok := loop.Post.(*ast.ExprStmt); ok {
			if call, ok := step.X.(*ast.CallExpr); ok {
				steps[call.Fun.Pos()] = true
			}
		}
		return true
	})
	return steps
}

func values(m map[string]string) []string {
	var list []string
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
