package printers

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// Sorter sorts objects by a field.
type Sorter struct{ path *jsonpath.JSONPath }

// ParseSorter parses the path of a field, such as .metadata.creationTimestamp.
func ParseSorter(text string) (*Sorter, error) {
	path, err := parsePath(text)
	return &Sorter{path}, err
}

// Compare returns a negative number if a comes before b. Numbers and quantities are compared by value, other
// values by their text (which orders times, too). An object without the field comes first.
func (s *Sorter) Compare(a, b any) (int, error) {
	x, err := s.value(a)
	if err != nil {
		return 0, err
	}
	y, err := s.value(b)
	if err != nil {
		return 0, err
	}
	p, perr := resource.ParseQuantity(x)
	q, qerr := resource.ParseQuantity(y)
	if perr == nil && qerr == nil {
		return p.Cmp(q), nil
	}
	return strings.Compare(x, y), nil
}

func (s *Sorter) value(item any) (string, error) {
	object, err := apiutil.ToUnstructured(item)
	if err != nil {
		return "", err
	}
	cells, err := cellsAt([]*jsonpath.JSONPath{s.path}, object)
	if err != nil || cells[0] == "<none>" {
		return "", err
	}
	return cells[0], nil
}
