package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

const (
	// maxValues is the maximum number of scalars, lists and maps in a document. Each needs hundreds of
	// bytes of memory, and in real YAML each takes at least ten bytes of text.
	maxValues = 100_000

	// maxExpanded is the maximum size of a document with all aliases expanded, in bytes: repeated text
	// costs as much memory as written text.
	maxExpanded = 2 * maxDocument
)

// parseTree parses a document into a tree of nodes with their lines. It returns nil for a document without
// content, and refuses documents that need too much memory. The error's line is relative to the document, 0
// for unknown.
func parseTree(data []byte) (*yaml.Node, *Error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(err).explainTab(data)
	}
	// The splitter recognizes only "---" after a newline; YAML has other line ends, and "...". The text
	// after them must not be lost.
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		line := more.Line
		if err != nil {
			line = syntaxError(err).Line
		}
		return nil, &Error{Line: line, Message: "another document begins inside this one: separate documents by a line of ---"}
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	m := treeSize{done: map[*yaml.Node]int{}, open: map[*yaml.Node]bool{}}
	size, err := m.size(root)
	switch {
	case err != nil:
		return nil, err
	case m.nodes > maxValues:
		return nil, &Error{Message: fmt.Sprintf("has more than %d values", maxValues)}
	case size > maxExpanded:
		return nil, &Error{Message: fmt.Sprintf("is larger than %d MiB with its aliases written out", maxExpanded>>20)}
	}
	return root, nil
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^line (\d+): `)
})

// syntaxError takes the line from the YAML library's message. The message has none for the first line.
func syntaxError(err error) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine().FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	return &Error{Line: line, Message: "invalid YAML: " + msg}
}

// explainTab replaces the message for a line that is indented with a tab: the library reports only that a
// tab cannot start any token.
func (e *Error) explainTab(data []byte) *Error {
	for i, line := range bytes.SplitN(data, []byte{'\n'}, e.Line+1) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if i+1 == e.Line && bytes.ContainsRune(indent, '\t') {
			e.Message = "invalid YAML: the line is indented with a tab, where only spaces may be"
		}
	}
	return e
}

// treeSize adds up the size of a tree with its aliases expanded. It visits each node once.
type treeSize struct {
	nodes int
	done  map[*yaml.Node]int // sizes of the anchored nodes
	open  map[*yaml.Node]bool
}

func (m *treeSize) size(n *yaml.Node) (int, *Error) {
	if n.Kind == yaml.AliasNode {
		size, known := m.done[n.Alias]
		if !known || m.open[n.Alias] {
			return 0, &Error{Line: n.Line, Message: fmt.Sprintf("the alias *%s contains itself", apiutil.Truncate(n.Value, 40))}
		}
		return size, nil
	}
	m.nodes++
	if n.Anchor != "" {
		m.open[n] = true
		m.done[n] = 0
	}
	size := 1 + len(n.Value)
	for _, child := range n.Content {
		more, err := m.size(child)
		if err != nil {
			return 0, err
		}
		if size += more; size > maxExpanded {
			size = maxExpanded + 1 // the exact value is not needed, and it cannot overflow
		}
	}
	if n.Anchor != "" {
		m.open[n] = false
		m.done[n] = size
	}
	return size, nil
}

// duplicateKeys calls found with the path and the line of every duplicate key in a map of the tree.
func duplicateKeys(n *yaml.Node, path *field.Path, found func(path *field.Path, line int)) {
	switch n.Kind {
	case yaml.MappingNode:
		keys := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			child := ChildPath(path, key.Value)
			if keys[key.Value] { // 1 and "1" too: both become "1"
				found(child, key.Line)
			}
			keys[key.Value] = true
			duplicateKeys(n.Content[i+1], child, found)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			duplicateKeys(item, path.Index(i), found)
		}
	}
}
