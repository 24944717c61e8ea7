package apiutil

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// FieldCache caches the JSON fields of Go types.
type FieldCache map[reflect.Type]map[string]reflect.Type

// Fields returns the JSON fields of a struct type with their types, including the fields of inlined structs.
func (s FieldCache) Fields(t reflect.Type) map[string]reflect.Type {
	if known, ok := s[t]; ok {
		return known
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, inline := JSONName(f)
		switch {
		case inline:
			for name, t := range s.Fields(DerefType(f.Type)) {
				fields[name] = t
			}
		case name != "":
			fields[name] = f.Type
		}
	}
	s[t] = fields
	return fields
}

// JSONName returns a struct field's name in JSON, "" for none, and whether the field is inlined.
func JSONName(f reflect.StructField) (name string, inline bool) {
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && (f.Anonymous || strings.Contains(opts, "inline")) {
		return "", true
	}
	if name == "-" || !f.IsExported() {
		return "", false
	}
	return name, false
}

// DerefType removes all pointers from a type.
func DerefType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// UnmarshalsItself reports whether a type decodes its own JSON: Quantity, Time, IntOrString.
func UnmarshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// SetFields returns the JSON names of the fields of a struct that are not nil, in the order of its Go type. All
// of its fields are pointers.
func SetFields(source any) (names []string) {
	v := reflect.ValueOf(source)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _ := JSONName(v.Type().Field(i))
			names = append(names, name)
		}
	}
	return names
}
