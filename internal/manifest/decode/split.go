package decode

import (
	"bytes"
	"fmt"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// maxDocument is the maximum size of one YAML document in bytes. Kubernetes itself accepts about 1.5 MiB per
// object.
const maxDocument = 1 << 20

// maxDocuments is the maximum number of documents in a file.
const maxDocuments = 10_000

// document is one YAML document of a file.
type document struct {
	number int // 1-based
	line   int // of its first line in the file, 1-based
	start  int // of its text in the file, in bytes
	data   []byte
}

// split splits a file at the lines that begin with "---", as Kubernetes' YAML splitter does, and records
// where each document begins. The text before the first separator counts as a document only if it has
// content. A separator line may have a comment and nothing else.
func split(file string, data []byte) ([]document, *Error) {
	var docs []document
	current := document{number: 1, line: 1}
	for pos, line := 0, 1; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		if rest, ok := bytes.CutPrefix(data[pos:end], []byte("---")); ok {
			rest = bytes.TrimSpace(rest)
			if len(rest) > 0 && rest[0] != '#' {
				return nil, &Error{File: file, Document: current.number, Line: line, Message: fmt.Sprintf("a document separator (---) may only be followed by a comment, not by %q", apiutil.Truncate(string(rest), 40))}
			}
			current.data = data[current.start:pos]
			number := current.number
			if len(docs) == maxDocuments {
				return nil, &Error{File: file, Message: fmt.Sprintf("has more than %d documents", maxDocuments)}
			}
			if len(docs) > 0 || !isBlank(current.data) {
				docs = append(docs, current)
				number++
			}
			current = document{number: number, line: line + 1, start: end}
		}
		pos = end
	}
	current.data = data[current.start:]
	return append(docs, current), nil
}

// isBlank reports whether a document has only comments and white space.
func isBlank(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
