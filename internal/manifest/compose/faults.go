package compose

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// maxFaults bounds how many faults of the files are reported at once: the files are loaded again for each.
const maxFaults = 20

// invalid is the library's error about an attribute that the specification does not have, or not with this value. It
// reports only the first.
var invalid = regexp.MustCompile(`^validating (.+): ((?:services|networks|volumes|secrets|configs)\.\S+) `)

// loadAll loads the project. A part that the specification does not have is reported and left out, so that all other
// faults of the files are found, too.
func (c *converter) loadAll(ctx context.Context, details types.ConfigDetails, options ...func(*loader.Options)) (*types.Project, error) {
	for {
		c.warnings = slices.DeleteFunc(c.warnings, func(m api.Message) bool { return m.Path == "" }) // the library's, which it repeats
		project, err := loader.LoadWithContext(ctx, details, options...)
		if err == nil {
			return project, nil
		}
		words := invalid.FindStringSubmatch(err.Error())
		i := slices.IndexFunc(details.ConfigFiles, func(f types.ConfigFile) bool { return words != nil && f.Filename == words[1] })
		if i < 0 || len(c.problems) == maxFaults {
			if len(c.problems) > 0 { // the error may follow from what is left out
				err = errReported
			}
			return nil, err
		}
		m := c.located(err)
		text, path := without(details.ConfigFiles[i].Content, strings.Split(words[2], "."))
		if path != nil {
			position := c.files.find(path...)
			m.File, m.Line = position.file, position.line
		}
		if c.problems = append(c.problems, m); path == nil {
			return nil, errReported
		}
		details.ConfigFiles[i].Content = text
	}
}

// errReported is the error of a project whose faults have been reported.
var errReported = errors.New("the files have faults")

// without returns the text of a file without an attribute, and the attribute's path, whose keys may have dots. The path is
// nil if the file does not have the attribute.
func without(text []byte, attribute []string) (rest []byte, path []string) {
	var out bytes.Buffer
	decoder, encoder := yaml.NewDecoder(bytes.NewReader(text)), yaml.NewEncoder(&out)
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil
		}
		if len(doc.Content) > 0 && path == nil {
			path = cut(doc.Content[0], attribute)
		}
		if encoder.Encode(&doc) != nil {
			return nil, nil
		}
	}
	if encoder.Close() != nil {
		return nil, nil
	}
	return out.Bytes(), path
}

// cut removes an attribute, also from a mapping that a merge key (<<) names, and returns its path, or nil.
func cut(n *yaml.Node, attribute []string) []string {
	n = resolve(n)
	switch n.Kind {
	case yaml.SequenceNode:
		return cutItem(n, attribute)
	case yaml.MappingNode:
		return cutKey(n, attribute)
	}
	return nil
}

func cutItem(n *yaml.Node, attribute []string) []string {
	i, err := strconv.Atoi(attribute[0])
	switch {
	case err != nil || i >= len(n.Content):
		return nil
	case len(attribute) > 1:
		return below(attribute[0], cut(n.Content[i], attribute[1:]))
	}
	n.Content = slices.Delete(n.Content, i, i+1)
	return attribute
}

func cutKey(n *yaml.Node, attribute []string) []string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		if key == "<<" {
			for _, merged := range items(value) {
				if path := cut(merged, attribute); path != nil {
					return path
				}
			}
		}
		for j := range attribute {
			if key != strings.Join(attribute[:j+1], ".") {
				continue
			}
			if j+1 == len(attribute) {
				n.Content = slices.Delete(n.Content, i, i+2)
				return []string{key}
			}
			if path := cut(value, attribute[j+1:]); path != nil {
				return below(key, path)
			}
		}
	}
	return nil
}

// below returns a path below a key, or nil if there is none.
func below(key string, path []string) []string {
	if path == nil {
		return nil
	}
	return append([]string{key}, path...)
}
