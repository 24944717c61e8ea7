package printers

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/report"
)

// Format is an output format.
type Format string

const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// PrintPod writes one Pod as kubectl get -o does.
func PrintPod(p *corev1.Pod, f Format) ([]byte, error) {
	p = p.DeepCopy()
	defaulting.SetPullPolicies(&p.Spec)
	return printObject(p, f)
}

func printObject(v any, f Format) ([]byte, error) {
	switch f {
	case JSON:
		data, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			return nil, fmt.Errorf("print as json: %w", err)
		}
		// Characters that a terminal would interpret are escaped, as JSON allows in any string.
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			b.WriteString(report.Escape(strings.TrimSuffix(line, "\n")) + "\n")
		}
		return []byte(b.String()), nil
	case YAML:
		data, err := json.Marshal(v)
		if err == nil { // the library accepts some characters only if they are escaped
			data, err = kyaml.JSONToYAML([]byte(report.Escape(string(data))))
		}
		if err != nil {
			return nil, fmt.Errorf("print as yaml: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("unknown output format %q", f)
}

// PrintList writes objects of any kind as kubectl get -o does: a single object, or a List.
func PrintList(items []any, single bool, f Format) ([]byte, error) {
	if single && len(items) == 1 {
		return printObject(items[0], f)
	}
	if items == nil {
		items = []any{}
	}
	return printObject(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta `json:"metadata"`
		Items           []any           `json:"items"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: items}, f)
}
