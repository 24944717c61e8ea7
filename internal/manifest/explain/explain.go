// Package explain describes the fields of the supported kinds: with the texts of k8s.io/api, and with
// podrun's support of each.
package explain

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/report"
)

// Page returns the page of a field of a kind, in the form of kubectl explain, followed by podrun's support. An
// empty path is the kind itself. recursive lists the names of all fields below, without their texts. It is an
// error if there is no such field.
func Page(kind string, path []string, recursive bool) (string, error) {
	k, ok := decode.KindOf(kind)
	if !ok {
		return "", fmt.Errorf("explain %s: unknown kind", kind)
	}
	w := &writer{support: support.LookupOf(kind), recursive: recursive}
	group, version, grouped := strings.Cut(k.APIVersion, "/")
	if grouped {
		fmt.Fprintf(w, "GROUP:      %s\n", group)
	} else {
		version = group
	}
	fmt.Fprintf(w, "KIND:       %s\nVERSION:    %s\n\n", kind, version)
	current := member{typ: reflect.TypeOf(k.New()).Elem()}
	for i, name := range path {
		next, ok := current.find(name)
		if !ok {
			parent := strings.Join(append([]string{strings.ToLower(kind)}, path[:i]...), ".")
			return "", report.New(report.Usage, "podrun explain "+parent+" lists the fields", "field %q does not exist", name)
		}
		current = next
	}
	w.page(&current)
	return w.String(), nil
}

// member is a field of a type, or a kind itself.
type member struct {
	name     string
	row      string // path in the support tables; "" for a kind
	doc      string
	typ      reflect.Type
	required bool
}

// find returns a field by its name.
func (m *member) find(name string) (member, bool) {
	list := m.members()
	i := slices.IndexFunc(list, func(c member) bool { return c.name == name })
	if i < 0 {
		return member{}, false
	}
	return list[i], true
}

// members returns the fields of the member's type or of its items, by name; nil for a scalar.
func (m *member) members() []member {
	t := item(m.typ)
	if t.Kind() != reflect.Struct || apiutil.UnmarshalsItself(t) {
		return nil
	}
	prefix := m.row
	if apiutil.DerefType(m.typ).Kind() == reflect.Slice {
		prefix += "[]"
	}
	if prefix != "" {
		prefix += "."
	}
	list := structMembers(t, prefix)
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return list
}

func structMembers(t reflect.Type, prefix string) (list []member) {
	docs := texts(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, inline := apiutil.JSONName(f)
		switch {
		case inline:
			list = append(list, structMembers(apiutil.DerefType(f.Type), prefix)...)
		case name != "":
			list = append(list, member{name: name, row: prefix + name, doc: docs[name], typ: f.Type, required: !strings.Contains(f.Tag.Get("json"), ",omit")})
		}
	}
	return list
}

// texts returns the documentation of a type of k8s.io/api: of the type itself under "", and of its fields.
func texts(t reflect.Type) map[string]string {
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return d.SwaggerDoc()
	}
	return nil
}

// item returns the type of a field without pointers, lists and maps.
func item(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map:
			t = t.Elem()
		case reflect.Slice:
			if t.Elem().Kind() == reflect.Uint8 {
				return t
			}
			t = t.Elem()
		default:
			return t
		}
	}
}

// typeName returns the name of a type in the form of kubectl explain.
func typeName(t reflect.Type) string {
	switch t = apiutil.DerefType(t); t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "map[string]" + typeName(t.Elem())
	case reflect.Struct:
		if t.Name() == "Time" || t.Name() == "MicroTime" {
			return "string"
		}
		return t.Name()
	}
	return "integer"
}

// writer writes a page.
type writer struct {
	strings.Builder
	support   support.Lookup
	recursive bool
}

func (w *writer) page(m *member) {
	text := texts(item(m.typ))[""]
	if m.name != "" {
		fmt.Fprintf(w, "FIELD: %s <%s>%s\n\n", m.name, typeName(m.typ), requiredMark(m))
		if text = strings.TrimSpace(m.doc + "\n" + text); text == "" {
			text = "<empty>"
		}
	}
	w.WriteString("DESCRIPTION:\n")
	w.paragraph(text)
	if m.name != "" {
		f := w.support.Field(m.row)
		w.WriteString("PODRUN:\n")
		w.paragraph(strings.TrimSuffix(string(f.Support)+": "+f.Describe(), ": "))
	}
	list := m.members()
	if len(list) == 0 {
		return
	}
	w.WriteString("FIELDS:\n")
	for i := range list {
		w.field(&list[i], support.Supported, 1)
	}
}

// field writes one field of a list, with its text or with the fields below it, and its support if that is not
// the support of the field above.
func (w *writer) field(m *member, above support.Level, level int) {
	mark, ownLevel := requiredMark(m), w.support.Field(m.row).Support
	if ownLevel != above {
		mark += " (" + string(ownLevel) + " by podrun)"
	}
	fmt.Fprintf(w, "%s%s\t<%s>%s\n", strings.Repeat("  ", level), m.name, typeName(m.typ), mark)
	if !w.recursive {
		w.paragraph(cmp.Or(m.doc, "<no description>"))
		return
	}
	list := m.members()
	for i := range list {
		w.field(&list[i], ownLevel, level+1)
	}
}

func requiredMark(m *member) string {
	if m.required {
		return " -required-"
	}
	return ""
}

// width is the length of lines, as in kubectl explain.
const width = 80

// paragraph writes a text, indented and wrapped, and an empty line.
func (w *writer) paragraph(text string) {
	const indent = "    "
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		out := indent
		for _, word := range strings.Fields(line) {
			if len(out)+1+len(word) > width && out != indent {
				w.WriteString(strings.TrimRight(out, " ") + "\n")
				out = indent
			}
			out += word + " "
		}
		w.WriteString(strings.TrimRight(out, " ") + "\n")
	}
	w.WriteString("\n")
}
