package scriptcmd

import (
	"fmt"
	"strings"
)

// KubectlTable is the path of the table of kubectl's verbs below the module's directory.
const KubectlTable = "test/script/kubectl/table.txtar"

// Section is the verbs below one heading, and what is executed for them.
type Section struct {
	Heading string
	Rows    []Row
}

// Row is one line of the table that is executed.
type Row struct {
	Verb, Status string // of the verb to which the row belongs; "" before the first verb of a heading
	Kind         RowKind
	Line         string // of a shell; without the word podrun unless Kind is Prepare
	Code         int
	Want         string // a regular expression
	Repeat       bool
}

// RowKind is how a line is executed.
type RowKind string

// The kinds of lines, by their first character; "$" is any other.
const (
	Interrupt RowKind = "&" // once it has printed what is expected
	Prepare   RowKind = "%"
)

// ParseTable parses the table, whose first lines explain its form.
func ParseTable(text string) ([]Section, error) {
	var sections []Section
	var verb, status string
	var last *Row // without its result
	for i, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		bad := func(why string) error { return fmt.Errorf("line %d: %s: %q", i+1, why, line) }
		switch {
		case mark == "##":
			sections = append(sections, Section{Heading: rest})
			verb, status = "", ""
			continue
		case len(sections) == 0 || line == "":
			continue
		}
		in := &sections[len(sections)-1]
		switch mark {
		case "###":
			var ok bool
			if verb, status, ok = strings.Cut(rest, ": "); !ok {
				return nil, bad("a verb has a status")
			}
		case "$", string(Interrupt), string(Prepare):
			if last != nil {
				return nil, bad("the line before has no result")
			}
			in.Rows = append(in.Rows, Row{Verb: verb, Status: status, Kind: RowKind(mark), Line: rest})
			if mark != string(Prepare) {
				last = &in.Rows[len(in.Rows)-1]
			}
		default:
			if last == nil {
				return nil, bad("it is neither a verb nor a line with its result")
			}
			result, repeat := strings.CutPrefix(line, "? ")
			if _, err := fmt.Sscanf(result, "%d", &last.Code); err != nil {
				return nil, bad("a result begins with the exit code")
			}
			_, last.Want, _ = strings.Cut(result, " ")
			last.Repeat, last = repeat, nil
		}
	}
	return sections, nil
}
