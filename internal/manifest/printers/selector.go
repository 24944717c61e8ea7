package printers

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// Selector selects pods by their labels, in kubectl's syntax: "app=web,tier!=db", "env in (a,b)", "!old".
type Selector struct{ selector labels.Selector }

// Matches reports whether a pod's labels match.
func (s Selector) Matches(pod map[string]string) bool { return s.selector.Matches(labels.Set(pod)) }

// ParseSelector parses a label selector.
func ParseSelector(text string) (Selector, error) {
	s, err := labels.Parse(text)
	return Selector{s}, err
}

// FieldSelector reports whether an object's fields match.
type FieldSelector func(item any) (bool, error)

// ParseFieldSelector parses a selector in kubectl's syntax: "status.phase!=Running, metadata.name=web".
// Unlike an API server, which has an index of a few fields, it accepts any field.
func ParseFieldSelector(text string) (FieldSelector, error) {
	s, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	paths := map[string]*jsonpath.JSONPath{}
	for _, r := range s.Requirements() {
		if paths[r.Field], err = parsePath(r.Field); err != nil {
			return nil, err
		}
	}
	return func(item any) (bool, error) {
		object, err := apiutil.ToUnstructured(item)
		if err != nil {
			return false, err
		}
		set := fields.Set{}
		for field, path := range paths {
			cells, err := cellsAt([]*jsonpath.JSONPath{path}, object)
			if err != nil {
				return false, err
			}
			if set[field] = cells[0]; cells[0] == "<none>" {
				set[field] = ""
			}
		}
		return s.Matches(set), nil
	}, nil
}
