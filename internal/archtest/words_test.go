package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// forbiddenWords may not stand anywhere, split so that this file passes.
var forbiddenWords = []struct{ a, b, why string }{
	{"proxy.golang", ".org", registries},
	{"sum.golang", ".org", registries},
	{"deb.debian", ".org", registries},
	{"security.debian", ".org", registries},
	{"snapshot.debian", ".org", registries},
	{"archive.raspberrypi", ".org", registries},
	{"archive.raspberrypi", ".com", registries},
	{"archive.ubuntu", ".com", registries},
	{"TO", "DO", "do it, or write an issue"},
	{"FIX", "ME", "fix it, or write an issue"},
	{"/work/", "main", "a path of one machine"},
	{"/work/", "shared", "a path of one machine"},
}

const registries = "mirrors differ from site to site: the tools know theirs"

func TestForbiddenWords(t *testing.T) {
	for _, p := range allPaths(t) {
		text := read(t, p)
		if !utf8.ValidString(text) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, w := range forbiddenWords {
				if strings.Contains(line, w.a+w.b) {
					t.Errorf("%s:%d: %q may not stand here: %s", p, i+1, w.a+w.b, w.why)
				}
			}
		}
	}
}

// A retired word is one that podrun had of its own, where the field has a term.
type retired struct {
	words   string // of a name, joined by _; or a regular expression of paths or text
	instead string
	except  string // a regular expression of paths, or of lines of text; after "!": of the only paths where it is retired
}

// exempt are the paths whose text is left alone: decisions and the changelog keep the words of their time.
var exempt = regexp.MustCompile(`^(docs/decisions|changelog|internal/archtest)/`)

func (r retired) allows(at string) bool {
	if only, ok := strings.CutPrefix(r.except, "!"); ok {
		return !regexp.MustCompile(only).MatchString(at)
	}
	return r.except != "" && regexp.MustCompile(r.except).MatchString(at)
}

func TestRetiredNames(t *testing.T) {
	for _, f := range allFiles(t) {
		if exempt.MatchString(f.path) {
			continue
		}
		for id := range declared(f) {
			name := "_" + nameWords(id.Name) + "_"
			for _, r := range retiredNames {
				if strings.Contains(name, "_"+r.words+"_") && !r.allows(f.path) {
					t.Errorf("%s: the name %s has a retired word: say %s", at(id.Pos()), id.Name, r.instead)
				}
			}
		}
	}
}

func TestRetiredFiles(t *testing.T) {
	for _, p := range allPaths(t) {
		for _, r := range retiredFiles {
			if regexp.MustCompile(r.words).MatchString(p) && !r.allows(p) {
				t.Errorf("%s: a retired name of a file: say %s", p, r.instead)
			}
		}
	}
}

func TestRetiredText(t *testing.T) {
	kinds := []string{".c", ".h", ".md", ".txtar", ".sh", ".yaml", ".golden"}
	all := make([]*regexp.Regexp, len(retiredText))
	for i, r := range retiredText {
		all[i] = regexp.MustCompile(r.words)
	}
	check := func(p string, line int, text string) {
		for i, r := range retiredText {
			if all[i].MatchString(text) && !r.allows(p) && !r.allows(text) {
				t.Errorf("%s:%d: %q is retired: say %s\n\t%s", p, line, all[i].FindString(text), r.instead, strings.TrimSpace(text))
			}
		}
	}
	for _, p := range allPaths(t) {
		if exempt.MatchString(p) || !slices.Contains(kinds, path.Ext(p)) && path.Dir(p) != "scripts" {
			continue
		}
		for i, line := range strings.Split(read(t, p), "\n") {
			check(p, i+1, line)
		}
	}
	for _, f := range allFiles(t) {
		if exempt.MatchString(f.path) {
			continue
		}
		prose(f, func(pos token.Pos, text string) {
			first := fset.Position(pos).Line
			for i, line := range strings.Split(text, "\n") {
				check(f.path, first+i, line)
			}
		})
	}
}

// prose gives the comments and strings of a file.
func prose(f *goFile, found func(pos token.Pos, text string)) {
	for _, g := range f.Comments {
		for _, c := range g.List {
			found(c.Pos(), c.Text)
		}
	}
	imports := map[*ast.BasicLit]bool{}
	for _, s := range f.Imports {
		imports[s.Path] = true
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !imports[lit] {
			found(lit.Pos(), lit.Value)
		}
		return true
	})
}

// declared are the identifiers that a file declares, local ones among them.
func declared(f *goFile) map[*ast.Ident]bool {
	names := map[*ast.Ident]bool{}
	add := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok && id != nil {
				names[id] = true
			}
		}
	}
	addAll := func(list []*ast.Ident) {
		for _, id := range list {
			names[id] = true
		}
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names[n.Name] = true
		case *ast.TypeSpec:
			names[n.Name] = true
		case *ast.ValueSpec:
			addAll(n.Names)
		case *ast.Field:
			addAll(n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}

// nameWords are the words of a name, in small letters, joined by _.
func nameWords(name string) string {
	var words []string
	begin := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		edge := i == len(runes) || runes[i] == '_' || unicode.IsDigit(runes[i]) || unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if !edge {
			continue
		}
		if w := strings.Trim(string(runes[begin:i]), "_0123456789"); w != "" {
			words = append(words, strings.ToLower(w))
		}
		begin = i
	}
	return strings.Join(words, "_")
}

func TestNameWords(t *testing.T) {
	for name, want := range map[string]string{"podInit": "pod_init", "HTTPServer": "http_server", "takeUp2": "take_up", "a": "a", "v6": "v", "_x": "x", "TestMendsAll": "test_mends_all"} {
		if got := nameWords(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestCNames: functions and variables of C have no retired words either.
func TestCNames(t *testing.T) {
	word := regexp.MustCompile(`\b[a-z_][a-z0-9_]*\b`)
	for _, p := range allPaths(t) {
		if ext := path.Ext(p); ext != ".c" && ext != ".h" || strings.Contains(p, "/testdata/") {
			continue
		}
		for i, line := range strings.Split(read(t, p), "\n") {
			if code, _, _ := strings.Cut(line, "//"); !strings.HasPrefix(strings.TrimSpace(code), "*") {
				for _, name := range word.FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(code, ""), -1) {
					for _, r := range retiredNames {
						if strings.Contains("_"+name+"_", "_"+r.words+"_") && !r.allows(p) {
							t.Errorf("%s:%d: the name %s has a retired word: say %s", p, i+1, name, r.instead)
						}
					}
				}
			}
		}
	}
}
