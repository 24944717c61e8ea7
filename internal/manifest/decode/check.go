package decode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// checker compares a decoded document with its Go type and removes what does not fit, so that the rest can
// still be decoded and validated.
//
// Kubernetes' own decoder finds the same mistakes, but only the first one of wrong type, and without lines.
// It decides in the end: see typedObject.
type checker struct {
	schema apiutil.FieldCache
	tree   *yaml.Node
	full   func() bool // no more mistakes are reported
	report func(path *field.Path, message string)
	// suggested is called with the suggested path for an unknown field.
	suggested func(path *field.Path)
}

// check reports whether a value, as encoding/json decodes it with UseNumber, fits a type. Parts that do not
// fit are reported and removed.
func (c *checker) check(t reflect.Type, v any, path *field.Path) bool {
	t = apiutil.DerefType(t)
	switch {
	case v == nil:
		return true
	case t == reflect.TypeFor[resource.Quantity]():
		if msg := quantityProblem(v); msg != "" {
			c.report(path, msg)
			return false
		}
		return true
	case apiutil.UnmarshalsItself(t):
		return c.opaque(t, v, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.fields(t, v, path)
	case reflect.Map:
		return c.mapEntries(t, v, path)
	case reflect.Slice:
		return c.listItems(t, v, path)
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
	known := c.schema.Fields(t)
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
				c.suggested(path.Child(meant))
			}
		}
		c.report(ChildPath(path, name), msg)
	}
	return true
}

func (c *checker) mapEntries(t reflect.Type, v any, path *field.Path) bool {
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

func (c *checker) listItems(t reflect.Type, v any, path *field.Path) bool {
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

// scalar returns the reason why a value does not fit a scalar type, or "".
func (c *checker) scalar(t reflect.Type, v any, path *field.Path) string {
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); ok {
			return ""
		}
		msg := fmt.Sprintf("is %s, not text", describeValue(v))
		if typed := scalarAt(c.tree, pathString(path)); typed != "" && !c.full() {
			msg += fmt.Sprintf(": quote it (%q)", apiutil.Truncate(typed, 60))
		}
		return msg
	case reflect.Bool:
		if _, ok := v.(bool); ok {
			return ""
		}
		return fmt.Sprintf("is %s, not true or false", describeValue(v))
	}
	number, ok := v.(json.Number)
	if !ok {
		return fmt.Sprintf("is %s, not a number", describeValue(v))
	}
	if _, err := strconv.ParseInt(number.String(), 10, t.Bits()); err != nil {
		return fmt.Sprintf("%s is not a whole number of %d bits", apiutil.Truncate(number.String(), 60), t.Bits())
	}
	return ""
}

func (c *checker) mismatch(v any, want string, path *field.Path) bool {
	c.report(path, fmt.Sprintf("is %s, not %s", describeValue(v), want))
	return false
}

// describeValue returns a description of a JSON value for a message.
func describeValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("text (%q)", apiutil.Truncate(v, 60))
	case bool:
		return fmt.Sprintf("a boolean (%t)", v)
	default:
		return fmt.Sprintf("a number (%s)", apiutil.Truncate(fmt.Sprint(v), 60))
	}
}

// redactSecret removes a Secret's values from messages about them.
func redactSecret(report func(*field.Path, string)) func(*field.Path, string) {
	return func(path *field.Path, msg string) {
		suffix := "." + pathString(path)
		if value := strings.Contains(suffix, ".data[") || strings.Contains(suffix, ".stringData["); value && strings.Contains(msg, ", not ") {
			_, want, _ := strings.Cut(msg, ", not ")
			want, _, _ = strings.Cut(want, ":")
			msg = "is not " + want + ": quote it"
		}
		report(path, msg)
	}
}

// quantityProblem returns the reason why a JSON value is no quantity that podrun can use, or "". Negative
// ones are left to validation, which has the API server's words for them.
func quantityProblem(v any) string {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		return fmt.Sprintf("is %s, not a quantity", describeValue(v))
	}
	return apiutil.QuantityProblem(text)
}
