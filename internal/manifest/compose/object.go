package compose

import (
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// object is a Kubernetes object or a part of one. The types of Kubernetes would make the program several
// times as large; the tests decode every object with them.
type object map[string]any

// set sets a field, unless the value is empty.
func (o object) set(name string, value any) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() {
		return
	}
	if k := v.Kind(); (k == reflect.Map || k == reflect.Slice) && v.Len() == 0 {
		return
	}
	o[name] = value
}

// encode returns objects as YAML documents, with sorted keys.
func encode(objects []object) (string, error) {
	var b limitedWriter
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	for _, o := range objects {
		if err := e.Encode(map[string]any(o)); err != nil {
			return "", err
		}
	}
	err := e.Close()
	return b.String(), err
}

// add adds an object of the project.
func (c *converter) add(apiVersion, kind, name string, content object) {
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{
		"name": name, "labels": object{labelProject: c.project.Name}, "annotations": object{annotationProject: c.project.Name},
	}}
	for key, value := range content {
		o[key] = value
	}
	c.objects = append(c.objects, o)
}

// Labels of the recommended set of Kubernetes.
const (
	labelProject = "app.kubernetes.io/part-of"
	labelService = "app.kubernetes.io/name"
)

// annotationProject has the project of a pod or an object, so that podrun does not take it for one of another project, or
// of a manifest that has the same label.
const annotationProject = "podrun.dev/compose-project"

// dnsLabel reports whether a Service can have a name.
func dnsLabel(name string) bool {
	return len(name) <= maxLabel && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(name)
}

// maxLabel is the maximum length of a DNS label.
const maxLabel = 63

// toLabel makes a DNS label of any name.
func toLabel(name string) string {
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	if len(name) > maxLabel {
		name = name[:maxLabel]
	}
	return strings.Trim(name, "-")
}

// toName makes the name of an object of any name: a DNS subdomain.
func toName(name string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-"), "-.")
}

// literal returns a text that Kubernetes does not expand: there $$ stands for a $, and $(VAR) for a variable.
func literal(s string) string {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "$(") {
		return s
	}
	return strings.ReplaceAll(s, "$", "$$")
}

// literals is literal for a list.
func literals(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = literal(s)
	}
	return out
}
