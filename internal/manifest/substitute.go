package manifest

import (
	"bytes"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/report"
)

// Substitute replaces ${NAME}, ${NAME:=DEFAULT} and the other forms of a shell in a manifest, as Flux does
// (kustomize-controller: spec.postBuild.substitute); $${NAME} becomes ${NAME}. A variable that is not set and has no default is
// an error, where Flux takes it as empty. A document with the label or annotation kustomize.toolkit.fluxcd.io/substitute: disabled
// stays as it is.
func Substitute(file string, text []byte, vars map[string]string) ([]byte, error) {
	var out bytes.Buffer
	for i, document := range splitDocuments(text) {
		if isDisabled(document) {
			out.Write(document)
			continue
		}
		missing := ""
		replaced, err := envsubst.Eval(string(document), func(name string) (string, bool) {
			value, ok := vars[name]
			if !ok {
				missing = name
			}
			return value, ok
		})
		switch {
		case err != nil && missing != "":
			return nil, report.New(report.Usage, "set it in the file of --env-file, or write ${"+missing+":=DEFAULT}; $${"+missing+"} stands for ${"+missing+"}",
				"%s, document %d: the variable %s is not set", file, i+1, missing)
		case err != nil:
			return nil, report.New(report.Usage, "", "%s, document %d: replace variables: %w", file, i+1, err)
		}
		out.WriteString(replaced)
	}
	return out.Bytes(), nil
}

// splitDocuments splits a stream of documents; together the parts are the text.
func splitDocuments(text []byte) [][]byte {
	parts := [][]byte{nil}
	for line := range bytes.Lines(text) {
		last := &parts[len(parts)-1]
		if bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimSpace(*last)) > 0 {
			parts = append(parts, nil)
			last = &parts[len(parts)-1]
		}
		*last = append(*last, line...)
	}
	return parts
}

// isDisabled reports whether nothing is replaced in a document.
func isDisabled(document []byte) bool {
	const key, disabled = "kustomize.toolkit.fluxcd.io/substitute", "disabled"
	if !bytes.Contains(document, []byte(key)) {
		return false
	}
	var object struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if yaml.Unmarshal(document, &object) != nil { // it becomes valid, or is reported later
		return false
	}
	return object.Metadata.Labels[key] == disabled || object.Metadata.Annotations[key] == disabled
}
