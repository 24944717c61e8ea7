package manifest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checker compares a decoded document with the Go type it is meant for, and takes
// out what does not fit, so that the rest can still be decoded and validated.
//
// Kubernetes' own decoder finds the same mistakes, but only the first of wrong
// type, and without lines. It has the last word: see decodePod.
type checker struct {
	schema schema
	tree   *yaml.Node
	full   func() bool // no more mistakes are wanted
	report func(path *field.Path, message string)
	// meant is called with the path that an unknown field was meant to have.
	meant func(path *field.Path)
}

// check says whether a value, as encoding/json gives it with UseNumber, fits a
// type. Parts that do not fit are reported and removed.
func (c *checker) check(t reflect.Type, v any, path *field.Path) bool {
	t = deref(t)
	switch {
	case v == nil:
		return true
	case t == reflect.TypeFor[resource.Quantity]():
		if msg := checkQuantity(v); msg != "" {
			c.report(path, msg)
			return false
		}
		return true
	case opaque(t):
		return c.opaque(t, v, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.fields(t, v, path)
	case reflect.Map:
		return c.entries(t, v, path)
	case reflect.Slice:
		return c.items(t, v, path)
	default:
		if msg := c.scalar(t, v, path); msg != "" {
			c.report(path, msg)
			return false
		}
		return true
	}
}

func (c *checker) fields(t reflect.Type, v any, path *field.Path) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return c.mismatch(v, "a map", path)
	}
	known := c.schema.fields(t)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		ft, ok := known[name]
		if ok {
			if !c.check(ft, object[name], path.Child(name)) {
				delete(object, name)
			}
			continue
		}
		delete(object, name)
		msg := "unknown field"
		if c.full() {
			c.report(nil, msg)
			continue
		}
		if meant := suggest(t.Name(), name, slices.Collect(maps.Keys(known))); meant != "" {
			msg += fmt.Sprintf(" (did you mean %s?)", meant)
			if _, given := object[meant]; !given {
				c.meant(path.Child(meant))
			}
		}
		c.report(under(path, name), msg)
	}
	return true
}

func (c *checker) entries(t reflect.Type, v any, path *field.Path) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return c.mismatch(v, "a map", path)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !c.check(t.Elem(), object[key], path.Key(key)) {
			delete(object, key)
		}
	}
	return true
}

func (c *checker) items(t reflect.Type, v any, path *field.Path) bool {
	if t.Elem().Kind() == reflect.Uint8 {
		s, ok := v.(string)
		if !ok {
			return c.mismatch(v, "base64 text", path)
		}
		if _, err := base64.StdEncoding.DecodeString(s); err != nil {
			c.report(path, "is not base64: "+err.Error())
			return false
		}
		return true
	}
	list, ok := v.([]any)
	if !ok {
		return c.mismatch(v, "a list", path)
	}
	for i := range list {
		if !c.check(t.Elem(), list[i], path.Index(i)) {
			list[i] = nil // the others keep their index
		}
	}
	return true
}

func (c *checker) opaque(t reflect.Type, v any, path *field.Path) bool {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err != nil {
		c.report(path, err.Error())
	}
	return err == nil
}

// scalar gives the reason why a value does not fit a scalar type, or "".
func (c *checker) scalar(t reflect.Type, v any, path *field.Path) string {
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); ok {
			return ""
		}
		msg := fmt.Sprintf("is %s, not text", describe(v))
		if typed := textOf(c.tree, text(path)); typed != "" && !c.full() {
			msg += fmt.Sprintf(": quote it (%q)", clip(typed, 60))
		}
		return msg
	case reflect.Bool:
		if _, ok := v.(bool); ok {
			return ""
		}
		return fmt.Sprintf("is %s, not true or false", describe(v))
	}
	number, ok := v.(json.Number)
	if !ok {
		return fmt.Sprintf("is %s, not a number", describe(v))
	}
	if _, err := strconv.ParseInt(number.String(), 10, t.Bits()); err != nil {
		return fmt.Sprintf("%s is not a whole number of %d bits", clip(number.String(), 60), t.Bits())
	}
	return ""
}

func (c *checker) mismatch(v any, want string, path *field.Path) bool {
	c.report(path, fmt.Sprintf("is %s, not %s", describe(v), want))
	return false
}

// describe names a JSON value for a message.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("text (%q)", clip(v, 60))
	case bool:
		return fmt.Sprintf("a boolean (%t)", v)
	default:
		return fmt.Sprintf("a number (%s)", clip(fmt.Sprint(v), 60))
	}
}
