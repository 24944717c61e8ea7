package manifest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// schema knows the JSON fields of Go types. It remembers what it looked up.
type schema map[reflect.Type]map[string]reflect.Type

// fields gives the JSON fields of a struct type with their types, those of
// inlined structs included.
func (s schema) fields(t reflect.Type) map[string]reflect.Type {
	if known, ok := s[t]; ok {
		return known
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, inline := jsonName(f)
		switch {
		case inline:
			for name, t := range s.fields(deref(f.Type)) {
				fields[name] = t
			}
		case name != "":
			fields[name] = f.Type
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

// deref removes all pointers from a type.
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
