package support

import "strings"

// Lookup finds podrun's support of the fields of one kind.
type Lookup struct{ rows table }

// LookupOf returns the Lookup of a supported kind.
func LookupOf(kind string) Lookup { return Lookup{newTable(tableOf(kind))} }

// Field returns the row of a field by its path, with [] for the items of a list: its own, or the row of the
// accepted or refused field above it.
func (l Lookup) Field(path string) Field {
	for above := path; above != ""; {
		if r, ok := l.rows.find(above); ok && (above == path || r.Support != Supported) {
			return r
		}
		i := strings.LastIndexAny(above, ".[")
		above = above[:max(i, 0)]
	}
	return l.rows.row(path)
}

// Describe returns the values with the row's support, and its note.
func (r Field) Describe() string {
	if len(r.Only) == 0 {
		return r.Note
	}
	only := "only `" + strings.Join(r.Only, "`, `") + "`"
	if r.Note == "" {
		return only
	}
	return only + "; " + r.Note
}
