package printers

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podrun/podrun/manifest/apiutil"
)

// Selector chooses pods by their labels, in kubectl's words: "app=web,tier!=db",
// "env in (a,b)", "!old".
type Selector struct{ selector labels.Selector }

// Matches says whether a pod has labels that are asked for.
func (s Selector) Matches(pod map[string]string) bool { return s.selector.Matches(labels.Set(pod)) }

// ParseSelector reads a selector. The error says what is wrong with it.
func ParseSelector(text string) (Selector, error) {
	s, err := labels.Parse(text)
	return Selector{s}, err
}

// FieldSelector says whether an object's fields are as asked for.
type FieldSelector func(item any) (bool, error)

// ParseFieldSelector reads a selector in kubectl's words: "status.phase!=Running,
// metadata.name=web". Other than a server, which has an index of a few, it takes any field.
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
