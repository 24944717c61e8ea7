package protocol

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
)

const page = "../../docs/explanation/protocol.md"

// headers are the C headers that are written. Each has the names that the C files of its directory use.
var headers = []string{"../reexec/nsenter/protocol.h", "../reexec/fastpath/protocol.h", "../execshim/c/protocol.h", "../reexec/containerinit/protocol.h"}

// A line is one constant of protocol.go.
type line struct {
	name, value     string // value: as in the source
	parties, effect string // of the comment
}

type section struct {
	title string
	lines []line
}

var comment = regexp.MustCompile(`^// (.+ [→↔] .+?): (.+)\n?$`)

func table(t *testing.T) (sections []section) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "protocol.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		block := d.(*ast.GenDecl)
		s := section{title: strings.Join(strings.Fields(block.Doc.Text()), " ")}
		for _, spec := range block.Specs {
			v := spec.(*ast.ValueSpec)
			l := line{name: v.Names[0].Name, value: v.Values[0].(*ast.BasicLit).Value}
			m := [][]string{}
			if v.Comment != nil {
				m = comment.FindAllStringSubmatch(v.Comment.List[0].Text, -1)
			}
			if len(m) == 0 {
				t.Fatalf("%s has no comment SENDER → RECEIVER: meaning", l.name)
			}
			l.parties, l.effect = m[0][1], m[0][2]
			s.lines = append(s.lines, l)
		}
		sections = append(sections, s)
	}
	return sections
}

var words = regexp.MustCompile(`FDs?|IPC|UTS|NS|UID|GID|PID|ID|OOM|CLI|[A-Z][a-z]+`)

// macro returns the C name of a constant: PODRUN_FD_LOCK of FDLock. Without the prefix MSG_, FD_ and LOCK_ belong to the C library.
func macro(t *testing.T, name string) string {
	parts := words.FindAllString(name, -1)
	if strings.Join(parts, "") != name {
		t.Fatalf("cannot divide %s into words: %q", name, parts)
	}
	return "PODRUN_" + strings.ToUpper(strings.Join(parts, "_"))
}

func header(t *testing.T, sections []section, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.[ch]"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no C files in %s: %v", dir, err)
	}
	var used strings.Builder
	for _, file := range files {
		if filepath.Base(file) != "protocol.h" {
			used.WriteString(read(t, file))
		}
	}
	out := "// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.\n#pragma once\n"
	for _, s := range sections {
		first := true
		for _, l := range s.lines {
			name := macro(t, l.name)
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(used.String()) {
				continue
			}
			if first {
				out += "\n// " + s.title + "\n"
			}
			first = false
			out += fmt.Sprintf("#define %s %s // %s: %s\n", name, l.value, l.parties, l.effect)
		}
	}
	return out
}

// TestGenerated fails if a C header or the page differs from the table; with -update it writes them.
func TestGenerated(t *testing.T) {
	sections := table(t)
	for _, file := range headers {
		golden.Check(t, file, header(t, sections, filepath.Dir(file)))
	}
	const begin, end = "<!-- generated from internal/protocol/protocol.go: go generate ./internal/protocol -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(read(t, page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part", page)
	}
	var text strings.Builder
	for _, s := range sections {
		title := regexp.MustCompile(`_PODRUN_[A-Z_]+`).ReplaceAllString(s.title, "`$0`")
		fmt.Fprintf(&text, "%s\n\n| value | name in Go | from → to | meaning |\n|---|---|---|---|\n", title)
		for _, l := range s.lines {
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", strings.Trim(l.value, `"`), l.name, l.parties, l.effect)
		}
		text.WriteString("\n")
	}
	golden.Check(t, page, before+begin+"\n"+text.String()+end+after)
}

// TestUsed fails for a line that neither Go nor C code names.
func TestUsed(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && (ext == ".go" || ext == ".h") {
			for _, m := range regexp.MustCompile(`\bprotocol\.(\w+)|#define (\w+) `).FindAllStringSubmatch(read(t, path), -1) {
				used[m[1]+m[2]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range table(t) {
		for _, l := range s.lines {
			if !used[l.name] && !used[macro(t, l.name)] {
				t.Errorf("nothing uses %s", l.name)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Values that are overwritten in place, or bounded by the kernel.
func TestLengths(t *testing.T) {
	if len(AfterNothing) != len(AfterSandbox) {
		t.Errorf("%q and %q differ in length: the monitor overwrites one by the other", AfterNothing, AfterSandbox)
	}
	for _, name := range []string{CommMonitor, CommPodInit, CommSupervisor, CommProber, CommPause, CommUnitLoop, CommShim} {
		if len(name) > 15 {
			t.Errorf("%s is longer than the name of a process may be", name)
		}
	}
}
