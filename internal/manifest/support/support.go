package support

import (
	"slices"
	"strings"
)

// Level is podrun's support of a field.
type Level string

const (
	Supported Level = "supported" // works as in Kubernetes, except for what the note describes
	Accepted  Level = "accepted"  // has no meaning on one machine: it is read, stored and printed, with a message
	Refused   Level = "refused"   // not supported yet: a manifest that sets it is an error
)

// Field is podrun's support of one field.
//
// Path is the field's path in a Pod, with [] for the items of a list; in the tables below, a{b,c} stands for
// the two paths ab and ac. An entry of a map has its key in brackets; [x/*] stands for every key that begins with "x/", [*=*] for every key with a = in it, [*/*] for every other one
// with a domain, [*] for every key without a row. A row that is accepted or refused applies to everything below it; one that is
// supported has a row for every field below.
//
// A row of spec.containers[] also applies to spec.initContainers[] and spec.ephemeralContainers[], which
// have rows of their own only for differences.
type Field struct {
	Path    string
	Support Level
	// Only, if not empty, has the values with this support; every other value is refused. ['*'] at the
	// end stands for any key.
	Only []string
	Note string
}

// podTable returns every field of a Pod, in the order of the reference page.
func podTable() []Field {
	return expand(slices.Concat(metaRows, podRows, podSecurityRows, containerRows, probeRows, initRows, containerSecurityRows, volumeRows()))
}

// expand returns the rows with one row for each path: a{b,c} becomes ab and ac.
func expand(rows []Field) []Field {
	var out []Field
	for _, r := range rows {
		before, rest, _ := strings.Cut(r.Path, "{")
		list, after, _ := strings.Cut(rest, "}")
		for word := range strings.SplitSeq(list, ",") {
			r.Path = before + word + after
			out = append(out, r)
		}
	}
	return out
}

// table finds rows by path.
type table map[string]Field

func newTable(rows []Field) table {
	t := make(table, len(rows))
	for _, r := range rows {
		t[r.Path] = r
	}
	return t
}

// anyDevice stands for every name of a device among resources.
const anyDevice = "*=*"

// anyDeviceKind stands for every kind of devices among resources.
const anyDeviceKind = "*/*"

const (
	initPrefix      = "spec.initContainers[]"
	ephemeralPrefix = "spec.ephemeralContainers[]"
	containerPrefix = "spec.containers[]"
)

// row returns the row of a field. A field without a row is refused: the table's test ensures that there is
// none.
func (t table) row(path string) Field {
	if r, ok := t.find(path); ok {
		return r
	}
	return Field{Path: path, Support: Refused, Note: "this version of podrun does not have the field"}
}

func (t table) find(path string) (Field, bool) {
	if r, ok := t[path]; ok {
		return r, true
	}
	for _, prefix := range []string{initPrefix, ephemeralPrefix} {
		if before, after, ok := strings.Cut(path, prefix); ok { // in a Pod or in a template
			return t.find(before + containerPrefix + after)
		}
	}
	return Field{}, false
}

// entry returns the row of a map's key: the first of the key's own, a device's name, [domain/*], [*/*], [*] and the map.
func (t table) entry(path, key string) Field {
	domain, _, grouped := strings.Cut(key, "/")
	kinds := []string{key, domain + "/*", "*"}
	switch {
	case strings.Contains(key, "="):
		kinds = []string{anyDevice, "*"}
	case grouped:
		kinds = []string{key, domain + "/*", anyDeviceKind, "*"}
	}
	for _, k := range kinds {
		if r, ok := t.find(path + "[" + k + "]"); ok {
			return r
		}
	}
	return t.row(path)
}

// levelFor returns the support of one value of the row's field.
func (r Field) levelFor(value string) Level {
	if len(r.Only) == 0 {
		return r.Support
	}
	for _, allowed := range r.Only {
		if before, ok := strings.CutSuffix(allowed, "['*']"); ok && strings.HasPrefix(value, before+"['") && strings.HasSuffix(value, "']") || allowed == value {
			return r.Support
		}
	}
	return Refused
}
