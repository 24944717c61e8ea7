package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// under appends a key to a field path of unknown type: what is not a plain word
// goes into brackets, as the key of a map does.
func under(path *field.Path, key string) *field.Path {
	if !plainKey(key) {
		return path.Key(key)
	}
	return path.Child(key)
}

func plainKey(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return s != ""
}

// text writes a path, "" for nil.
func text(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// splitPath cuts a field path into keys and indexes. A bracket ends at the last
// "]" that a "." or a "[" follows, so that a key may hold dots.
func splitPath(path string) []string {
	var steps []string
	for path != "" {
		if path[0] == '[' {
			end := closing(path)
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

func closing(path string) int {
	for i := 1; i < len(path); i++ {
		if path[i] == ']' && (i+1 == len(path) || path[i+1] == '.' || path[i+1] == '[') {
			return i
		}
	}
	return len(path)
}

// lineOf gives the line of the field that a path names or, where the field is not
// there, of its nearest ancestor.
func lineOf(root *yaml.Node, path string) int {
	if root == nil {
		return 0
	}
	node, line := root, root.Line
	for _, step := range splitPath(path) {
		at, next := child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// textOf gives what was typed for the scalar at a path, "" where there is none.
func textOf(root *yaml.Node, path string) string {
	node := root
	for _, step := range splitPath(path) {
		if _, node = child(node, step); node == nil {
			return ""
		}
	}
	if node = follow(node); node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// child finds the node under a key or an index, and the line it is introduced on.
func child(n *yaml.Node, step string) (line int, found *yaml.Node) {
	n = follow(n)
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
		if line, found := value(n, step); found != nil {
			return line, found
		}
		_, merged := value(n, "<<")
		return inMerged(follow(merged), step)
	}
	return 0, nil
}

// value finds a key's value and the key's line. Of a key given twice the last
// one counts.
func value(n *yaml.Node, key string) (line int, found *yaml.Node) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == key {
			return n.Content[i].Line, n.Content[i+1]
		}
	}
	return 0, nil
}

// inMerged looks a key up in what "<<" brought, a map or a list of maps. It does
// not follow a merge inside a merge: that only costs a less precise line.
func inMerged(merged *yaml.Node, step string) (int, *yaml.Node) {
	if merged == nil {
		return 0, nil
	}
	maps := []*yaml.Node{merged}
	if merged.Kind == yaml.SequenceNode {
		maps = merged.Content
	}
	for _, one := range maps {
		if one = follow(one); one.Kind != yaml.MappingNode {
			continue
		}
		if line, found := value(one, step); found != nil {
			return line, found
		}
	}
	return 0, nil
}

func follow(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
