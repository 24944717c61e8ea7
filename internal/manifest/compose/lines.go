package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sources are the parsed files of a project, which the library's model has no positions of.
type sources struct {
	names map[string]string // of files as the user has written them, by path
	main  []*source         // in the order in which they are merged
}

// source is one file.
type source struct {
	path     string
	root     *yaml.Node // nil if it cannot be parsed
	included []*source
}

// position is a place in a file.
type position struct {
	file  string
	line  int
	depth int // how many parts of the path have been found
}

// add parses a file; data is its text, or nil.
func (s *sources) add(name, path string, data []byte) {
	s.names[path] = name
	s.main = append(s.main, parseSource(path, data, nil))
}

// parseSource parses a file and the files that it includes. A file that cannot be read has no positions: the
// library reports it.
func parseSource(path string, data []byte, within []string) *source {
	f := &source{path: path}
	if data == nil {
		data, _ = os.ReadFile(path)
	}
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 || slices.Contains(within, path) {
		return f
	}
	f.root = doc.Content[0]
	list := child(f.root, "include")
	if list == nil || list.Kind != yaml.SequenceNode {
		return f
	}
	for _, one := range list.Content {
		if one.Kind == yaml.MappingNode {
			one = child(one, "path")
		}
		if one != nil && one.Kind == yaml.ScalarNode {
			f.included = append(f.included, parseSource(f.beside(one.Value), nil, append(within, path)))
		}
	}
	return f
}

// beside returns the path of a file that another one names.
func (f *source) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.path), name)
}

// find returns the position of an attribute, or of the nearest one above it. The last file that has it
// decides, as in a merge.
func (s *sources) find(path ...string) position {
	var best position
	for _, f := range slices.Backward(s.main) {
		if p := f.find(path, 0); best.file == "" || p.depth > best.depth {
			best = p
		}
	}
	if name, ok := s.names[best.file]; ok {
		best.file = name
	} else {
		best.file = shown(best.file)
	}
	return best
}

// shown returns the name of a file for messages: relative, if it is below the working directory.
func shown(path string) string {
	if wd, err := os.Getwd(); err == nil {
		return strings.TrimPrefix(path, wd+"/")
	}
	return path
}

// maxExtends bounds how many services extend each other.
const maxExtends = 10

func (f *source) find(path []string, extended int) position {
	best := position{file: f.path}
	if f.root == nil {
		return best
	}
	best.line, best.depth = descend(f.root, path)
	for _, other := range f.included {
		if p := other.find(path, extended); p.depth > best.depth {
			best = p
		}
	}
	if len(path) < 2 || path[0] != "services" || extended == maxExtends {
		return best
	}
	if from := child(child(child(f.root, "services"), path[1]), "extends"); from != nil {
		file, base := f, from.Value
		if from.Kind == yaml.MappingNode {
			base = scalar(child(from, "service"))
			if name := scalar(child(from, "file")); name != "" {
				file = parseSource(f.beside(name), nil, nil)
			}
		}
		if p := file.find(append([]string{"services", base}, path[2:]...), extended+1); p.depth > best.depth {
			best = p
		}
	}
	return best
}

// descend returns the line of the deepest part of a path that exists, and its depth. The line of a key is
// that of its name.
func descend(n *yaml.Node, path []string) (line, depth int) {
	line = n.Line
	if len(path) == 0 {
		return line, 0
	}
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		if key, value := entry(n, path[0]); value != nil {
			below, depth := descend(value, path[1:])
			if depth == 0 {
				below = key.Line
			}
			return below, depth + 1
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(n.Content) {
			below, depth := descend(n.Content[i], path[1:])
			return below, depth + 1
		}
		if path[0] == anyItem {
			best := -1
			for _, item := range n.Content {
				if below, d := descend(item, path[1:]); d > best {
					line, best = below, d
				}
			}
			return line, best + 1
		}
	}
	return line, 0
}

// anyItem stands for one of the items of a list.
const anyItem = "[]"

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// child returns the value of a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	_, value := entry(resolve(n), key)
	return value
}

func scalar(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// entry returns a key of a mapping and its value, also one that a merge key (<<) brings.
func entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], resolve(n.Content[i+1])
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "<<" {
			continue
		}
		merged := resolve(n.Content[i+1])
		if merged.Kind != yaml.SequenceNode {
			if key, value := entry(merged, name); value != nil {
				return key, value
			}
			continue
		}
		for _, one := range merged.Content {
			if key, value := entry(resolve(one), name); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}
