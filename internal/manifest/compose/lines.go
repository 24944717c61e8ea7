package compose

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// sources are the parsed files of a project. They have the positions, which the library's model does not have.
type sources struct {
	names  map[string]string // of files as the user has written them, by path
	main   []*source         // in the order in which they are merged
	reader *reader
	count  int // files that are included or extended
	ports  int // of all services; the library is slow with many
}

// source is one file.
type source struct {
	path     string
	dir      string       // in which the names of other files are
	root     *yaml.Node   // nil if it cannot be parsed
	docs     []*yaml.Node // root, and the documents after it
	included []*source
	extended map[string]*source // by the name in the file
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
	s.main = append(s.main, newSource(path, filepath.Dir(path), data))
}

// newSource parses a file. The library reports what cannot be parsed.
func newSource(path, dir string, data []byte) *source {
	f := &source{path: path, dir: dir}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if decoder.Decode(&doc) != nil {
			break
		}
		if len(doc.Content) > 0 {
			f.docs = append(f.docs, doc.Content[0])
		}
	}
	if len(f.docs) > 0 {
		f.root = f.docs[0]
	}
	return f
}

// check reads the files that others include or extend, before the library does so without limits.
func (s *sources) check(env types.Mapping) error {
	for _, f := range s.main {
		if err := s.follow(f, env, nil); err != nil {
			return err
		}
	}
	return nil
}

// follow reads the files that a file includes and extends, and the files that these name.
func (s *sources) follow(f *source, env types.Mapping, within []string) error {
	if slices.Contains(within, f.path) {
		return nil // the library reports it
	}
	within = append(slices.Clone(within), f.path)
	for _, doc := range f.docs {
		if err := s.followIncludes(f, doc, env, within); err != nil {
			return fmt.Errorf("include: %w", err)
		}
		if err := s.followExtends(f, doc, env, within); err != nil {
			return err
		}
	}
	return nil
}

func (s *sources) followIncludes(f *source, doc *yaml.Node, env types.Mapping, within []string) error {
	for _, node := range items(child(doc, "include")) {
		paths := items(node)
		if node.Kind == yaml.MappingNode {
			paths = items(child(node, "path"))
			if s.reader.root != "" && (child(node, "env_file") != nil || child(node, "project_directory") != nil) {
				return errors.New("env_file and project_directory are refused under a policy, and in an artifact")
			}
			for _, file := range items(child(node, "env_file")) {
				if err := s.checkEnv(f.beside(expandName(file.Value, env)), env); err != nil {
					return err
				}
			}
		}
		dir := ""
		for _, path := range paths {
			other, err := s.read(f, path.Value, env)
			if err != nil {
				return err
			}
			if dir == "" { // all files have the directory of the first
				dir = other.dir
				err = s.checkEnv(filepath.Join(dir, ".env"), env)
			}
			other.dir = dir
			f.included = append(f.included, other)
			if err == nil {
				err = s.follow(other, env, within)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sources) followExtends(f *source, doc *yaml.Node, env types.Mapping, within []string) error {
	services := child(doc, "services")
	if services == nil || services.Kind != yaml.MappingNode {
		return nil
	}
	for i := 1; i < len(services.Content); i += 2 {
		for _, port := range items(child(services.Content[i], "ports")) {
			if s.ports += width(port, env); s.ports > maxPorts {
				return fmt.Errorf("services.%s.ports: is refused: a project has at most %d ports", services.Content[i-1].Value, maxPorts)
			}
		}
		name := scalar(child(child(services.Content[i], "extends"), "file"))
		if name == "" || f.extended[name] != nil {
			continue
		}
		other, err := s.read(f, name, env)
		if err == nil {
			if f.extended == nil {
				f.extended = map[string]*source{}
			}
			f.extended[name] = other
			err = s.follow(other, env, within)
		}
		if err != nil {
			return fmt.Errorf("services.%s.extends: %w", services.Content[i-1].Value, err)
		}
	}
	return nil
}

// read parses a file that another one names.
func (s *sources) read(f *source, name string, env types.Mapping) (*source, error) {
	if s.count++; s.count > maxFiles {
		return nil, fmt.Errorf("more than %d files are included or extended", maxFiles)
	}
	if s.reader.root != "" && strings.Contains(name, "$") {
		return nil, fmt.Errorf("%s is refused: under a policy, and in an artifact, no variable names a file", name)
	}
	path := f.beside(expandName(name, env))
	data, err := s.reader.read(path)
	if err != nil {
		return nil, err
	}
	return newSource(path, filepath.Dir(path), data), nil
}

// checkEnv reads an env file of an included file, if it exists.
func (s *sources) checkEnv(path string, env types.Mapping) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil // the library ignores it, or reports it
	}
	err := s.reader.readEnv(path, "", map[string]string{}, env.Resolve)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// expandName replaces the variables in the name of a file.
func expandName(name string, env types.Mapping) string {
	if text, err := template.Substitute(name, env.Resolve); err == nil {
		return text
	}
	return name // the library reports it
}

// items returns the items of a list, or the node itself if it is none.
func items(n *yaml.Node) []*yaml.Node {
	switch n = resolved(n); {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		list := make([]*yaml.Node, len(n.Content))
		for i, item := range n.Content {
			list[i] = resolve(item)
		}
		return list
	}
	return []*yaml.Node{n}
}

// width returns how many ports an item of a list of ports has.
func width(port *yaml.Node, env types.Mapping) int {
	text := port.Value
	if port.Kind == yaml.MappingNode {
		text = scalar(child(port, "published"))
	}
	text, _, _ = strings.Cut(expandName(text, env), "/")
	n := 1
	for part := range strings.SplitSeq(text, ":") {
		from, to, _ := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err == nil && err2 == nil && last > first {
			n = max(n, int(last-first)+1)
		}
	}
	return n
}

func resolved(n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	return resolve(n)
}

// beside returns the path of a file that another one names.
func (f *source) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.dir, name)
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
				file = f.extended[name]
			}
		}
		if file == nil {
			return best
		}
		if p := file.find(append([]string{"services", base}, path[2:]...), extended+1); p.depth > best.depth {
			best = p
		}
	}
	return best
}

// descend returns the line of the deepest part of a path that exists, and its depth. The line of a key is
// the line of its name.
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

// entry returns a key of a mapping and its value, also if a merge key (<<) names the mapping that has them.
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
		for _, node := range merged.Content {
			if key, value := entry(resolve(node), name); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}
