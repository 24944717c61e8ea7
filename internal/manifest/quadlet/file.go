package quadlet

import (
	"fmt"
	"slices"
	"strings"
)

// File is the text of a file of Quadlet, or of a drop-in of it. Name is its path.
type File struct{ Name, Text string }

// unitText is a unit file as its author wrote it.
type unitText struct {
	names    []string // names of the sections, in order
	sections map[string][]Assignment
}

// Assignment is one KEY=VALUE with its position. Continued lines are joined.
type Assignment struct {
	Key, Value string
	Where      string // file:line
}

func (a Assignment) String() string { return a.Key + "=" + a.Value }

// parse adds a file's text (systemd.syntax(7)) to the assignments of earlier files.
func (q *unitText) parse(file, text string) error {
	section := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		where := fmt.Sprintf("%s:%d", file, i+1)
		line := strings.TrimSpace(lines[i])
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) && !comment(line) {
			i++
			if next := strings.TrimSpace(lines[i]); !comment(next) { // systemd ignores a comment in between
				line = strings.TrimSuffix(line, `\`) + " " + next
			}
		}
		switch {
		case strings.ContainsAny(line, "\r\x00"): // the value would become two lines of the unit
			return fmt.Errorf("%s: %q has a carriage return or a NUL byte in it, where systemd ends a line: remove it", where, shorten(line))
		case line == "" || comment(line):
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
			if !slices.Contains(q.names, section) {
				q.names = append(q.names, section)
			}
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				return fmt.Errorf("%s: %q is not an assignment in a section", where, shorten(line))
			}
			if q.sections == nil {
				q.sections = map[string][]Assignment{}
			}
			q.sections[section] = append(q.sections[section], Assignment{strings.TrimSpace(key), strings.TrimSpace(value), where})
		}
	}
	return nil
}

func comment(line string) bool { return line != "" && (line[0] == '#' || line[0] == ';') }

func shorten(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// all returns the values of a key; an empty one removes those before it.
func (q *unitText) all(section, key string) []Assignment {
	var list []Assignment
	for _, a := range q.sections[section] {
		if a.Key == key {
			list = append(list, a)
		}
		if a.Key == key && a.Value == "" {
			list = nil
		}
	}
	return list
}

// last returns the value of a key that can be set once.
func (q *unitText) last(section, key string) string {
	list := q.all(section, key)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Value
}

// parseAll parses a file with its drop-ins.
func parseAll(files []File) (*unitText, error) {
	q := &unitText{}
	for _, f := range files {
		if err := q.parse(f.Name, f.Text); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// trimQuotes removes the quotes around a value.
func trimQuotes(v string) string {
	if len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

// parseBool parses systemd's booleans.
func parseBool(v string) (on, ok bool) {
	switch strings.ToLower(v) {
	case "1", "yes", "y", "true", "t", "on":
		return true, true
	case "0", "no", "n", "false", "f", "off":
		return false, true
	}
	return false, false
}
