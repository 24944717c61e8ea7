package manifest

import (
	"strings"
	"testing"
)

func TestSubstitute(t *testing.T) {
	vars := map[string]string{"NAME": "web", "EMPTY": "", "REGION": "eu-west"}
	for _, c := range []struct{ text, want string }{
		{"name: ${NAME}", "name: web"},
		{"a: ${EMPTY}b", "a: b"},
		{"a: ${MISSING:=default}", "a: default"},
		{"a: ${NAME:=default}", "a: web"},
		{"a: ${MISSING:-other}", "a: other"},
		{"a: ${REGION/eu/us}", "a: us-west"},
		{"a: $NAME $(NAME)", "a: $NAME $(NAME)"},
		{"a: $${NAME}", "a: ${NAME}"},
		{"a: ${MISSING}", "error: x.yaml, document 1: the variable MISSING is not set"},
		{"a: 1\n---\nb: ${MISSING}\n", "error: x.yaml, document 2: the variable MISSING is not set"},
		{"a: ${NAME", "error: x.yaml, document 1: replace variables: "},
		{"metadata: {labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\na: ${NAME}\n---\nb: ${NAME}\n", "metadata: {labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\na: ${NAME}\n---\nb: web\n"},
		{"metadata: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\na: ${NAME}\n", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\na: ${NAME}\n"},
		{"---\n# a comment\n---\na: ${NAME}\n--- # end\n", "---\n# a comment\n---\na: web\n--- # end\n"},
		{"", ""},
	} {
		got, err := Substitute("x.yaml", []byte(c.text), vars)
		text := string(got)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != c.want && (err == nil || !strings.HasPrefix(text, c.want)) {
			t.Errorf("%q: %q instead of %q", c.text, text, c.want)
		}
	}
}
