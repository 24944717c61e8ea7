package printers

import (
	"strings"
	"testing"
)

var waited = map[string]any{
	"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
	"status": map[string]any{
		"readyReplicas": 1000000, "phase": "Running", "list": []any{"x"},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Other", "status": "False"}},
	},
}

// TestJSONPathTest: the forms of kubectl wait --for=jsonpath, and its errors.
func TestJSONPathTest(t *testing.T) {
	for text, want := range map[string]string{
		"{.status.readyReplicas}=1000000":                      "true",
		"'{.status.phase}'=Running":                            "true",
		"{.status.phase}='Running'":                            "true",
		".status.phase=Pending":                                "false",
		"{.status.phase}":                                      "true",
		"{.status.none}":                                       "false",
		"{.status.none}=1":                                     "false",
		`{.status.conditions[?(@.type=="Ready")].status}=True`: "true",
		`{.status.conditions[?(@.type=="Other")].status}=True`: "false",
		"{.status.conditions[*].status}=True":                  "matches more than one value",
		"{.status.list}=x":                                     "nested object or list",
		"{.metadata.labels}":                                   "true",
	} {
		test, err := ParseJSONPathTest(text)
		got := ""
		if err == nil {
			var met bool
			if met, err = test(waited); met {
				got = "true"
			} else {
				got = "false"
			}
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "{.a}=", "{.a}=1=2", "{{.a}}=1"} {
		if _, err := ParseJSONPathTest(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestConditionTest(t *testing.T) {
	for words, want := range map[string]bool{"Ready True": true, "ready true": true, "Other True": false, "Other False": true, "None True": false} {
		name, status, _ := strings.Cut(words, " ")
		if got, err := ConditionTest(name, status)(waited); err != nil || got != want {
			t.Errorf("%s: %t, %v", words, got, err)
		}
	}
}

// TestTemplate: kubectl's go-template, with its functions; a missing key is no error.
func TestTemplate(t *testing.T) {
	item := map[string]any{"data": map[string]any{"p": "aHVzaA=="}, "list": []any{map[string]any{"a": "x"}}}
	for text, want := range map[string]string{
		"{{.data.p}}":                    "aHVzaA==",
		"{{.data.p | base64decode}}":     "hush",
		"{{.none}}":                      "<no value>",
		"{{exists . \"data\" \"p\"}}":    "true",
		"{{exists . \"list\" 0 \"a\"}}":  "true",
		"{{exists . \"list\" 1 \"a\"}}":  "false",
		"{{exists . \"data\" \"q\"}}":    "false",
		"{{exists . \"data\" \"p\" 0}}":  "false",
		"{{range .list}}{{.a}}{{end}}\n": "x\n",
	} {
		p, ok, err := ParsePrinter("go-template="+text, false)
		if err != nil || !ok {
			t.Errorf("%s: %t, %v", text, ok, err)
			continue
		}
		if got, err := p([]any{item}, true); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "{{.a", "{{nosuch .}}"} {
		if _, _, err := ParsePrinter("go-template="+text, false); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
