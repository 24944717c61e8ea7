package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/report"
)

// Marshal gives a Pod as the JSON that is stored beside its plan.
func Marshal(p *corev1.Pod) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode pod %s: %w", p.Name, err)
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote. A field of a newer podrun is left out.
func Unmarshal(data []byte) (*corev1.Pod, error) {
	var p corev1.Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	return &p, nil
}

// Format is how objects are printed.
type Format string

const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// Print writes one Pod as kubectl get -o does.
func Print(p *corev1.Pod, f Format) ([]byte, error) {
	p = p.DeepCopy()
	defaultPull(&p.Spec)
	return printObject(p, f)
}

func printObject(v any, f Format) ([]byte, error) {
	switch f {
	case JSON:
		data, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			return nil, fmt.Errorf("print as json: %w", err)
		}
		// What a terminal would obey is spelled out, as JSON allows in any string.
		var b strings.Builder
		for line := range strings.Lines(string(data)) {
			b.WriteString(report.Escape(strings.TrimSuffix(line, "\n")) + "\n")
		}
		return []byte(b.String()), nil
	case YAML:
		data, err := json.Marshal(v)
		if err == nil { // the library takes some characters only if they are spelled out
			data, err = kyaml.JSONToYAML([]byte(report.Escape(string(data))))
		}
		if err != nil {
			return nil, fmt.Errorf("print as yaml: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("unknown output format %q", f)
}
