// Package lazyjson encodes as encoding/json does, for a command that encodes a value of large types
// once: encoding/json first finds out how every type is encoded that a value might hold, which of
// a Kubernetes Pod takes a hundred times as long as to encode one. Here only what is there is looked at.
package lazyjson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Marshal gives what json.Marshal gives, for the types that podrun keeps: a name that several
// embedded structs have, or the option "string" of a field, is not known.
func Marshal(v any) ([]byte, error) {
	return encode(nil, reflect.ValueOf(v))
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	zeroer        = reflect.TypeFor[interface{ IsZero() bool }]()
)

// encode appends a value to b.
func encode(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(b, "null"...), nil
	}
	if !named(v.Type()) {
		switch v.Kind() {
		case reflect.Pointer:
			return encode(b, v.Elem()) // of nil it is not valid
		case reflect.Struct:
			return object(b, v)
		case reflect.Map:
			if v.Type().Key().Kind() == reflect.String && !named(v.Type().Key()) {
				return dictionary(b, v)
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() != reflect.Uint8 && !v.IsNil() {
				return list(b, v)
			}
		case reflect.Bool:
			return strconv.AppendBool(b, v.Bool()), nil
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			return strconv.AppendInt(b, v.Int(), 10), nil
		case reflect.String:
			return other(b, v.String())
		}
	} else if v.CanAddr() {
		return other(b, v.Addr().Interface())
	}
	return other(b, v.Interface())
}

// named says whether a type, or a pointer to it, has its own way to be encoded.
func named(t reflect.Type) bool {
	if t.PkgPath() == "" && t.Kind() != reflect.Struct { // it has no methods
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

// other appends what is small or rare.
func other(b []byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append(b, data...), nil
}

func object(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '{')
	start := len(b)
	b, err := fields(b, start, v)
	return append(b, '}'), err
}

// fields appends the fields of a struct, those of embedded ones in their places, to an object
// that begins at start.
func fields(b []byte, start int, v reflect.Value) ([]byte, error) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		value := v.Field(i)
		var err error
		switch {
		case embeds(f) && name == "":
			if value = reflect.Indirect(value); value.IsValid() {
				b, err = fields(b, start, value)
			}
		case tag == "-" || !f.IsExported() || left(value, options):
		default:
			if name == "" {
				name = f.Name
			}
			if len(b) > start {
				b = append(b, ',')
			}
			if b, err = other(b, name); err == nil {
				b, err = encode(append(b, ':'), value)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// embeds says whether a field is an embedded struct, or a pointer to one.
func embeds(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.Anonymous && t.Kind() == reflect.Struct
}

// left says whether a field is left out by omitempty or omitzero.
func left(v reflect.Value, options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		switch {
		case option == "omitempty" && empty(v), option == "omitzero" && zero(v):
			return true
		}
	}
	return false
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// zero asks the value, if it knows.
func zero(v reflect.Value) bool {
	t := v.Type()
	if v.IsZero() && t.Kind() == reflect.Pointer {
		return true
	}
	if !t.Implements(zeroer) && reflect.PointerTo(t).Implements(zeroer) {
		of := reflect.New(t)
		of.Elem().Set(v)
		v = of
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}

func dictionary(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	values := map[string]reflect.Value{}
	for key, value := range v.Seq2() {
		values[key.String()] = value
	}
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = other(b, key); err == nil {
			b, err = encode(append(b, ':'), values[key])
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func list(b []byte, v reflect.Value) ([]byte, error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = encode(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}
