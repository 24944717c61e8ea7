package decode

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ChildPath appends a key to a field path of unknown type: a key that is not a plain word is written in
// brackets, as the key of a map.
func ChildPath(path *field.Path, key string) *field.Path {
	if !isPlainKey(key) {
		return path.Key(key)
	}
	return path.Child(key)
}

func isPlainKey(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return s != ""
}

// pathString returns a path as text, "" for nil.
func pathString(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// SplitPath splits a field path into keys and indexes. A bracket ends at the last "]" that is followed by
// "." or "[", so that a key may contain dots.
func SplitPath(path string) []string {
	var steps []string
	for path != "" {
		if path[0] == '[' {
			end := closingBracket(path)
			steps = append(steps, path[1:end])
			path = strings.TrimPrefix(path[min(end+1, len(path)):], ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps = append(steps, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return steps
}

func closingBracket(path string) int {
	for i := 1; i < len(path); i++ {
		if path[i] == ']' && (i+1 == len(path) || path[i+1] == '.' || path[i+1] == '[') {
			return i
		}
	}
	return len(path)
}

// lineOf returns the line of the field at a path or, if it is missing, of its nearest ancestor.
func lineOf(root *yaml.Node, path string) int {
	if root == nil {
		return 0
	}
	node, line := root, root.Line
	for _, step := range SplitPath(path) {
		found, next := lookupStep(node, step)
		if next == nil {
			break
		}
		node, line = next, found
	}
	return line
}

// scalarAt returns the text of the scalar at a path, "" if there is none.
func scalarAt(root *yaml.Node, path string) string {
	node := root
	for _, step := range SplitPath(path) {
		if _, node = lookupStep(node, step); node == nil {
			return ""
		}
	}
	if node = resolveAlias(node); node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// lookupStep returns the node under a key or an index, and the line of the key or item.
func lookupStep(n *yaml.Node, step string) (line int, found *yaml.Node) {
	n = resolveAlias(n)
	if n == nil {
		return 0, nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(n.Content) {
			return 0, nil
		}
		return n.Content[i].Line, n.Content[i]
	case yaml.MappingNode:
		if line, found := lookupKey(n, step); found != nil {
			return line, found
		}
		_, merged := lookupKey(n, "<<")
		return lookupMerged(resolveAlias(merged), step)
	}
	return 0, nil
}

// lookupKey returns a key's value and the key's line. Of a duplicate key the last one counts.
func lookupKey(n *yaml.Node, key string) (line int, found *yaml.Node) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == key {
			return n.Content[i].Line, n.Content[i+1]
		}
	}
	return 0, nil
}

// lookupMerged looks a key up in the value of "<<", a map or a list of maps. It does not follow a merge
// inside a merge: the line is then only less precise.
func lookupMerged(merged *yaml.Node, step string) (int, *yaml.Node) {
	if merged == nil {
		return 0, nil
	}
	maps := []*yaml.Node{merged}
	if merged.Kind == yaml.SequenceNode {
		maps = merged.Content
	}
	for _, node := range maps {
		if node = resolveAlias(node); node.Kind != yaml.MappingNode {
			continue
		}
		if line, found := lookupKey(node, step); found != nil {
			return line, found
		}
	}
	return 0, nil
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
