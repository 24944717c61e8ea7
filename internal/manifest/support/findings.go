package support

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// Finding is podrun's support of one field that a Pod sets.
type Finding struct {
	Path    string // spec.containers[0].image
	Line    int    // in the file; 0: unknown
	Support Level
	Note    string // for people; may be empty
}

// FindPod returns a Finding for every field that a Pod sets, in the order of the Go types. The Pod must be
// as written, without defaults, which would count as set. A field with its type's zero value counts as not set.
func FindPod(p *corev1.Pod) []Finding {
	return append(findFields(p, podTable()), PodConflicts(p)...)
}

// Find is FindPod for an object of any supported kind.
func Find(kind string, object any) []Finding {
	if p, ok := object.(*corev1.Pod); ok {
		return FindPod(p)
	}
	return findFields(object, tableOf(kind))
}

// findFields looks the fields of an object up in rows; object is a pointer to its Go type.
func findFields(object any, rows []Field) []Finding {
	f := finder{rows: newTable(rows)}
	f.fields(reflect.ValueOf(object).Elem(), "", "")
	return f.found
}

type finder struct {
	rows  table
	found []Finding
}

// fields visits a struct. path has indexes, row is the path in the table.
func (f *finder) fields(v reflect.Value, path, row string) {
	for i := range v.NumField() {
		name, inline := apiutil.JSONName(v.Type().Field(i))
		switch {
		case inline:
			f.fields(v.Field(i), path, row)
		case name != "" && !isUnset(v.Field(i)):
			f.field(v.Field(i), dot(path, name), dot(row, name))
		}
	}
}

func (f *finder) field(v reflect.Value, path, row string) {
	r := f.rows.row(row)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	before := len(f.found)
	switch {
	case r.Support != Supported || apiutil.UnmarshalsItself(v.Type()):
	case v.Kind() == reflect.Struct:
		f.fields(v, path, row)
	case v.Kind() == reflect.Map:
		f.entries(v, path, row)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			f.fields(v.Index(i), path+"["+strconv.Itoa(i)+"]", row+"[]")
		}
	}
	if len(f.found) == before {
		f.add(r, path, scalarText(v, path))
	}
}

// entries visits a map: its entries one by one if the table has rows for them, else as one.
func (f *finder) entries(v reflect.Value, path, row string) {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	field := f.rows.row(row)
	whole := false
	for _, k := range keys {
		r := f.rows.entry(row, k)
		if r.Path == field.Path {
			whole = true
			continue
		}
		f.add(r, path+"["+k+"]", "")
	}
	if whole {
		f.add(field, path, "")
	}
}

func (f *finder) add(r Field, path, value string) {
	s := r.levelFor(value)
	note := r.Note
	switch {
	case s == Supported && len(r.Only) > 0:
		note = "" // it describes the other values
		if strings.HasPrefix(r.Note, defaultNote) {
			note = value
		}
	case s == Supported && strings.HasPrefix(note, defaultNote): // the field is set
		note = replaceDefault(note, value)
	case s != Refused:
	case len(r.Only) > 0:
		note = fmt.Sprintf("%q is not supported yet, only %s", apiutil.Truncate(value, 60), strings.Join(r.Only, ", "))
		if r.Note != "" {
			note += " (" + r.Note + ")"
		}
	default:
		note = "not supported yet: " + r.Note
	}
	f.found = append(f.found, Finding{Path: path, Support: s, Note: note})
}

// defaultNote begins notes on what a field is when it is not set.
const defaultNote = "default: "

// replaceDefault replaces the default at the beginning of a note, up to the first "; ", by the value of a
// field.
func replaceDefault(note, value string) string {
	_, rest, _ := strings.Cut(note, "; ")
	if value == "" || rest == "" {
		return value + rest
	}
	return value + "; " + rest
}

// scalarText returns a scalar as written in a manifest, modes as octal numbers; "" for anything else.
func scalarText(v reflect.Value, path string) string {
	switch {
	case v.Kind() == reflect.Int32 && (strings.HasSuffix(path, "Mode") || strings.HasSuffix(path, ".mode")):
		return fmt.Sprintf("%04o", v.Int())
	case v.Kind() == reflect.String || v.Kind() == reflect.Bool || v.CanInt():
		return apiutil.Truncate(fmt.Sprint(v.Interface()), 60)
	case v.CanAddr():
		if s, ok := v.Addr().Interface().(fmt.Stringer); ok && v.Type() == reflect.TypeFor[intstr.IntOrString]() {
			return apiutil.Truncate(s.String(), 60)
		}
	}
	return ""
}

// isUnset reports whether a field has the value that it has if the manifest does not contain it.
func isUnset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func dot(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
