package api

import (
	"reflect"
	"strings"
)

// Schema is what a strategic merge patch needs to know of a type: its fields, and how lists are merged. The image program
// gets it from the CLI, which links the types of the API: they would be a quarter more of the image program.
type Schema struct {
	Fields     map[string]*Schema `json:"fields,omitempty"`     // of a struct, or of the elements of a list
	List       bool               `json:"list,omitempty"`       // lists of lists do not occur in the API
	Strategies []string           `json:"strategies,omitempty"` // the tag patchStrategy
	MergeKey   string             `json:"mergeKey,omitempty"`   // the tag patchMergeKey
}

// SchemaOf returns the Schema of a type of the API, from the tags of its fields.
func SchemaOf(t reflect.Type) *Schema {
	s := &Schema{}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		s.List = s.List || t.Kind() == reflect.Slice
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return s
	}
	s.Fields = map[string]*Schema{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for inline, field := range SchemaOf(f.Type).Fields {
				s.Fields[inline] = field
			}
		case !f.IsExported() || name == "" || name == "-":
		default:
			field := SchemaOf(f.Type)
			if strategies := f.Tag.Get("patchStrategy"); strategies != "" {
				field.Strategies = strings.Split(strategies, ",")
			}
			field.MergeKey = f.Tag.Get("patchMergeKey")
			s.Fields[name] = field
		}
	}
	return s
}
