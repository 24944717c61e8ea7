package manifest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
)

// fill sets an empty value to a part of a document in which the checker has found nothing wrong,
// as Kubernetes' decoder would. It says false where that one has to be asked: at what is null, and
// at types that a Pod has next to none of.
//
// Kubernetes' decoder finds out about every type that an object might hold before it decodes one,
// which takes longer than all else about a manifest.
func (s schema) fill(to reflect.Value, from any) bool {
	t := to.Type()
	if t.Kind() == reflect.Pointer {
		to.Set(reflect.New(t.Elem()))
		return s.fill(to.Elem(), from)
	}
	if opaque(t) {
		return fillOpaque(to, from)
	}
	switch from := from.(type) {
	case map[string]any:
		if t.Kind() == reflect.Map {
			return s.fillMap(to, from)
		}
		return t.Kind() == reflect.Struct && s.fillStruct(to, from)
	case []any:
		return t.Kind() == reflect.Slice && s.fillSlice(to, from)
	case string:
		if t.Kind() == reflect.String {
			to.SetString(from)
			return true
		}
	case bool:
		if t.Kind() == reflect.Bool {
			to.SetBool(from)
			return true
		}
	case json.Number:
		if to.CanInt() {
			n, err := strconv.ParseInt(from.String(), 10, t.Bits())
			to.SetInt(n)
			return err == nil
		}
	}
	return false
}

// fillOpaque has a value read its own JSON.
func fillOpaque(to reflect.Value, from any) bool {
	v, ok := to.Addr().Interface().(json.Unmarshaler)
	if !ok || from == nil {
		return false
	}
	text, err := json.Marshal(from)
	return err == nil && v.UnmarshalJSON(text) == nil
}

func (s schema) fillStruct(to reflect.Value, from map[string]any) bool {
	known := s.fields(to.Type())
	for name, v := range from {
		m, ok := known[name]
		if !ok {
			return false
		}
		field, err := to.FieldByIndexErr(m.index) // it may be behind a pointer
		if err != nil || !s.fill(field, v) {
			return false
		}
	}
	return true
}

func (s schema) fillMap(to reflect.Value, from map[string]any) bool {
	t := to.Type()
	if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return false
	}
	to.Set(reflect.MakeMapWithSize(t, len(from)))
	for key, v := range from {
		value := reflect.New(t.Elem()).Elem()
		if !s.fill(value, v) {
			return false
		}
		to.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), value)
	}
	return true
}

func (s schema) fillSlice(to reflect.Value, from []any) bool {
	to.Set(reflect.MakeSlice(to.Type(), len(from), len(from)))
	for i, v := range from {
		if !s.fill(to.Index(i), v) {
			return false
		}
	}
	return true
}
