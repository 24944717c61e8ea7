package printers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// ObjectTest reports whether an object has what a user waits for.
type ObjectTest func(item any) (bool, error)

// ConditionTest returns the test of a condition in .status.conditions. Upper and lower case do not matter, as with
// kubectl wait (k8s.io/kubectl/pkg/cmd/wait/condition.go).
func ConditionTest(name, status string) ObjectTest {
	return func(item any) (bool, error) {
		object, err := apiutil.ToUnstructured(item)
		if err != nil {
			return false, err
		}
		top, _ := object.(map[string]any)
		state, _ := top["status"].(map[string]any)
		conditions, _ := state["conditions"].([]any)
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if kind, _ := c["type"].(string); strings.EqualFold(kind, name) {
				value, _ := c["status"].(string)
				return strings.EqualFold(value, status), nil
			}
		}
		return false, nil
	}
}

// ParseJSONPathTest parses PATH or PATH=VALUE, as kubectl wait (k8s.io/kubectl/pkg/cmd/wait/json.go): without a value any
// value passes. "==" belongs to a filter.
func ParseJSONPathTest(text string) (ObjectTest, error) {
	parts := strings.Split(strings.ReplaceAll(text, "==", "\x00"), "=")
	for i := range parts {
		parts[i] = strings.Trim(strings.ReplaceAll(parts[i], "\x00", "=="), `'"`)
	}
	switch {
	case len(parts) > 2 || parts[0] == "":
		return nil, errors.New("jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'")
	case len(parts) == 2 && parts[1] == "":
		return nil, errors.New("jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3")
	}
	path, err := parsePath(parts[0])
	if err != nil {
		return nil, err
	}
	return func(item any) (bool, error) {
		object, err := apiutil.ToUnstructured(item)
		if err != nil {
			return false, err
		}
		found, err := path.FindResults(object)
		switch {
		case err != nil:
			return false, err
		case len(found) == 0 || len(found[0]) == 0:
			return false, nil
		case len(parts) == 1:
			return true, nil
		case len(found) > 1:
			return false, errors.New("given jsonpath expression matches more than one list")
		case len(found[0]) > 1:
			return false, errors.New("given jsonpath expression matches more than one value")
		}
		switch value := found[0][0].Interface().(type) {
		case map[string]any, []any:
			return false, errors.New("jsonpath leads to a nested object or list which is not supported")
		default:
			return strings.TrimSpace(fmt.Sprint(value)) == strings.TrimSpace(parts[1]), nil
		}
	}, nil
}
