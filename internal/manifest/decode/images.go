package decode

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ReplaceImages replaces the references of images in the objects of a file, or in the services of a compose file; every
// other byte stays. A reference behind an anchor is replaced where it is written, and so for all its aliases. replace
// returns the reference to write.
func ReplaceImages(file string, data []byte, compose bool, replace func(reference string) (string, error)) ([]byte, error) {
	docs, bad := split(file, data)
	if bad != nil {
		return nil, bad
	}
	var out bytes.Buffer
	written := 0
	for _, doc := range docs {
		edits, err := doc.imageEdits(file, compose, replace)
		if err != nil {
			return nil, err
		}
		for _, e := range edits {
			out.Write(data[written : doc.start+e.start])
			out.WriteString(e.text)
			written = doc.start + e.end
		}
	}
	out.Write(data[written:])
	return out.Bytes(), nil
}

// edit is a new text for some bytes of a document.
type edit struct {
	start, end int
	text       string
}

// imageEdits returns the edits of a document, in its order.
func (doc document) imageEdits(file string, compose bool, replace func(string) (string, error)) ([]edit, error) {
	mistake := func(line int, message string) error {
		return &Error{File: file, Document: doc.number, Line: doc.line + max(line, 1) - 1, Message: message}
	}
	if len(doc.data) > maxDocument {
		return nil, mistake(1, fmt.Sprintf("the document is larger than %d MiB", maxDocument>>20))
	}
	if isBlank(doc.data) {
		return nil, nil
	}
	root, bad := parseTree(doc.data)
	if bad != nil {
		return nil, mistake(bad.Line, bad.Message)
	}
	lines := lineStarts(doc.data)
	var edits []edit
	for _, n := range findImages(root, compose) {
		reference := resolveAlias(n).Value
		text, err := replace(reference)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d, line %d: image %s: %w", file, doc.number, doc.line+n.Line-1, printable(reference), err)
		}
		if text == reference {
			continue
		}
		start, end, ok := scalarText(doc.data, lines, n)
		if !ok || strings.Trim(text, referenceCharacters) != "" {
			return nil, mistake(n.Line, fmt.Sprintf("image %s cannot be replaced by %s here: write it on one line", reference, text))
		}
		if n.Style&^yaml.TaggedStyle == 0 && strings.HasPrefix(text, "[") { // an IPv6 address
			text = `"` + text + `"`
		}
		edits = append(edits, edit{start, end, text})
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return edits, nil
}

// referenceCharacters are all that a reference may have: in any style of a scalar they stand for themselves.
const referenceCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@[]"

// imageFinder collects the references of images in a tree. Anchored nodes are in the tree, so it follows aliases and merges
// only from a list of containers or volumes on.
type imageFinder struct {
	found  []*yaml.Node         // scalars, and aliases of scalars
	known  map[*yaml.Node]bool  // found, and lists that were searched
	values map[keyOf]*yaml.Node // what value has returned
}

type keyOf struct {
	of  *yaml.Node
	key string
}

// findImages returns the references of an object, or of a compose file's services, as nodes that can be replaced alone.
func findImages(root *yaml.Node, compose bool) []*yaml.Node {
	f := imageFinder{known: map[*yaml.Node]bool{}, values: map[keyOf]*yaml.Node{}}
	switch {
	case root == nil || root.Kind != yaml.MappingNode:
	case compose:
		f.searchServices(f.value(root, "services"))
	case f.value(root, "apiVersion") != nil && f.value(root, "kind") != nil:
		f.searchObject(root)
	}
	return slices.DeleteFunc(f.found, func(n *yaml.Node) bool { return n.Kind == yaml.AliasNode && f.known[n.Alias] })
}

// searchObject searches all pod specs below a node: any map with lists of their names.
func (f *imageFinder) searchObject(n *yaml.Node) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			switch n.Content[i-1].Value {
			case "containers", "initContainers", "ephemeralContainers":
				f.eachItem(child, func(container *yaml.Node) { f.add(f.value(container, "image")) })
			case "volumes":
				f.eachItem(child, func(volume *yaml.Node) { f.add(f.value(f.value(volume, "image"), "reference")) })
			}
		}
		f.searchObject(child)
	}
}

// searchServices searches the services of a compose file.
func (f *imageFinder) searchServices(services *yaml.Node) {
	services = resolveAlias(services)
	if services == nil || services.Kind != yaml.MappingNode || f.known[services] {
		return
	}
	f.known[services] = true
	for i := 1; i < len(services.Content); i += 2 {
		service := services.Content[i]
		f.add(f.value(service, "image"))
		f.eachItem(f.value(service, "volumes"), func(volume *yaml.Node) {
			if kind := resolveAlias(f.value(volume, "type")); kind != nil && kind.Value == "image" {
				f.add(f.value(volume, "source"))
			}
		})
	}
	for _, merged := range mergedMaps(services) {
		f.searchServices(merged)
	}
}

// eachItem calls search for the items of a list, once for each list.
func (f *imageFinder) eachItem(list *yaml.Node, search func(item *yaml.Node)) {
	list = resolveAlias(list)
	if list == nil || list.Kind != yaml.SequenceNode || f.known[list] {
		return
	}
	f.known[list] = true
	for _, item := range list.Content {
		search(item)
	}
}

// add adds a reference.
func (f *imageFinder) add(n *yaml.Node) {
	s := resolveAlias(n)
	if s != nil && s.Kind == yaml.ScalarNode && s.ShortTag() == "!!str" && s.Value != "" && !f.known[n] {
		f.known[n] = true
		f.found = append(f.found, n)
	}
}

// value returns the value of a key in a map or in the maps that are merged into it; nil if there is none.
func (f *imageFinder) value(n *yaml.Node, key string) *yaml.Node {
	n = resolveAlias(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	if known, ok := f.values[keyOf{n, key}]; ok {
		return known
	}
	_, found := lookupKey(n, key)
	for _, merged := range mergedMaps(n) {
		if found != nil {
			break
		}
		found = f.value(merged, key)
	}
	f.values[keyOf{n, key}] = found
	return found
}

// mergedMaps returns the maps that are merged into a map, the first of which counts most.
func mergedMaps(n *yaml.Node) []*yaml.Node {
	_, merged := lookupKey(n, "<<")
	if merged = resolveAlias(merged); merged != nil && merged.Kind == yaml.SequenceNode {
		return merged.Content
	}
	return []*yaml.Node{merged}
}

// lineStarts returns where the lines of a document begin, with YAML's line ends.
func lineStarts(data []byte) []int {
	starts := []int{len(data) - len(bytes.TrimPrefix(data, []byte("\ufeff")))}
	for i, r := range string(data) {
		switch r {
		case '\r':
			if i+1 < len(data) && data[i+1] == '\n' {
				continue
			}
			fallthrough
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i+utf8.RuneLen(r))
		}
	}
	return starts
}

// scalarText returns where the text of a scalar or an alias is in a document, without its quotes. ok is false if it is not
// written as it reads.
func scalarText(data []byte, lines []int, n *yaml.Node) (start, end int, ok bool) {
	if n.Line > len(lines) {
		return 0, 0, false
	}
	start = lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(data[start:])
		start += size
	}
	if n.Kind == yaml.AliasNode {
		return start, start + 1 + len(n.Value), bytes.HasPrefix(data[start:], []byte("*"+n.Value))
	}
	for start < len(data) && (data[start] == '&' || data[start] == '!') { // an anchor, or a tag
		property := bytes.IndexAny(data[start:], " \t\r\n")
		if property < 0 {
			return 0, 0, false
		}
		start = skipSpace(data, start+property)
	}
	switch n.Style &^ yaml.TaggedStyle {
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		return quotedText(data, start)
	case yaml.LiteralStyle, yaml.FoldedStyle:
		start = skipSpace(data, start+max(bytes.IndexByte(data[start:], '\n'), 0))
	}
	text := strings.TrimSpace(n.Value)
	return start, start + len(text), bytes.HasPrefix(data[start:], []byte(text))
}

// skipSpace returns where the next text begins that is neither white space nor a comment.
func skipSpace(data []byte, start int) int {
	rest := bytes.TrimLeft(data[start:], " \t\r\n")
	for bytes.HasPrefix(rest, []byte("#")) {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
		rest = bytes.TrimLeft(rest, " \t\r\n")
	}
	return len(data) - len(rest)
}

// quotedText returns where the text between the quotes is that open at start.
func quotedText(data []byte, start int) (from, to int, ok bool) {
	if start >= len(data) || data[start] != '"' && data[start] != '\'' {
		return 0, 0, false
	}
	quote := data[start]
	for i := start + 1; i < len(data); i++ {
		switch {
		case quote == '"' && data[i] == '\\':
			i++
		case data[i] == quote && quote == '\'' && i+1 < len(data) && data[i+1] == quote:
			i++
		case data[i] == quote:
			return start + 1, i, true
		}
	}
	return 0, 0, false
}
