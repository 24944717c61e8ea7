package api

import (
	"strings"
	"testing"
)

func TestIsComposeFile(t *testing.T) {
	for text, want := range map[string]bool{
		"services:\n  web:\n    image: nginx\n":                      true,
		"---\nversion: '3'\n\"services\" :\n  web: {image: nginx}\n": true,
		"include:\n- other.yaml\n":                                   true,
		"":                                                           false,
		"apiVersion: v1\nkind: Pod\n":                                false,
		"kind: ConfigMap\nservices:\n":                               false,
		"apiVersion: v1\ndata:\n  compose.yaml: |\n    services:\n      web: {}\n": false,
		"data:\n  services:\n": false,
	} {
		if got := IsComposeFile([]byte(text)); got != want {
			t.Errorf("IsComposeFile(%q) = %v", text, got)
		}
	}
}

func TestMessageString(t *testing.T) {
	for want, m := range map[string]Message{
		"c.yaml, line 3: services.web.build: is refused": {"c.yaml", 3, "services.web.build", "is refused"},
		"c.yaml: is empty": {File: "c.yaml", Text: "is empty"},
		"is empty":         {Text: "is empty"},
	} {
		if got := m.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// TestLabel makes labels of names.
func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web", "a--b": "a--b", "my_db": "my-db", "My.DB": "my-db", "_x_": "x", "___": "",
		strings.Repeat("a", 70): strings.Repeat("a", 63), strings.Repeat("a", 62) + "_bc": strings.Repeat("a", 62),
	} {
		if got := Label(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
