package compose

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/podrun/podrun/internal/manifest/compose/api"
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

// add adds an object of the project, and returns its metadata. path is its place in the files. Two objects with the same
// name are refused.
func (c *converter) add(apiVersion, kind, name string, path []string, content object) object {
	if other, taken := c.added[kind+"/"+name]; taken && path != nil {
		c.refuse(path, "is refused: %s and %s (line %d) both become %s: rename one", path[1], other[1], c.files.find(other...).line, name)
	}
	c.added[kind+"/"+name] = path
	meta := object{"name": name, "labels": object{api.LabelProject: labelValue(c.project.Name)}, "annotations": object{annotationProject: c.project.Name}}
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	for key, value := range content {
		o[key] = value
	}
	c.objects = append(c.objects, o)
	return meta
}

// annotate adds an annotation to the metadata of an object.
func (o object) annotate(key, value string) {
	if o["annotations"] == nil {
		o["annotations"] = object{}
	}
	o["annotations"].(object)[key] = value
}

// annotationProject has the project of a pod or an object, so that podrun does not take it for one of another project, or
// of a manifest that has the same label.
const annotationProject = "podrun.dev/compose-project"

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
