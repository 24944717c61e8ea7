package manifest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// schema knows the JSON fields of Go types. It remembers what it looked up.
type schema map[reflect.Type]map[string]member

// member is a field of a struct type.
type member struct {
	typ   reflect.Type
	index []int // reflect.Value.FieldByIndex
}

// fields gives the JSON fields of a struct type, those of inlined structs included.
func (s schema) fields(t reflect.Type) map[string]member {
	if known, ok := s[t]; ok {
		return known
	}
	fields := map[string]member{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, inline := jsonName(f)
		switch {
		case inline:
			for name, m := range s.fields(deref(f.Type)) {
				fields[name] = member{m.typ, slices.Concat(f.Index, m.index)}
			}
		case name != "":
			fields[name] = member{f.Type, f.Index}
		}
	}
	s[t] = fields
	return fields
}

// jsonName gives a struct field's name in JSON, "" for none, and whether the
// field's own fields take its place.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && (f.Anonymous || strings.Contains(opts, "inline")) {
		return "", true
	}
	if name == "-" || !f.IsExported() {
		return "", false
	}
	return name, false
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// opaque says whether a type reads its own JSON: Quantity, Time, IntOrString.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
