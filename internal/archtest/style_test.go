package archtest

import (
	"go/ast"
	"go/token"
	"slices"
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
