package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// Parse reads the objects of a file. It also returns the objects that have mistakes, without the wrong
// parts.
func Parse(file string, data []byte) ([]Object, *Errors) {
	errs := &Errors{}
	docs, bad := split(file, data)
	if bad != nil {
		errs.Add(bad)
		return nil, errs
	}
	var objects []Object
	for _, doc := range docs {
		if errs.full() {
			errs.Truncated = true
			break
		}
		d := decoder{file: file, doc: doc, errs: errs, schema: apiutil.FieldCache{}}
		objects = append(objects, d.decode()...)
	}
	if len(objects) == 0 && len(errs.List) == 0 {
		errs.Add(&Error{File: file, Message: "contains no object"})
	}
	return objects, errs
}

// decoder reads one document.
type decoder struct {
	file   string
	doc    document
	errs   *Errors
	schema apiutil.FieldCache
	tree   *yaml.Node
}

func (d *decoder) decode() []Object {
	if len(d.doc.data) > maxDocument {
		d.fail(1, nil, fmt.Sprintf("the document is larger than %d MiB", maxDocument>>20))
		return nil
	}
	if isBlank(d.doc.data) {
		return nil
	}
	tree, bad := parseTree(d.doc.data)
	if bad != nil {
		d.fail(max(bad.Line, 1), nil, bad.Message)
		return nil
	}
	if tree == nil {
		return nil
	}
	d.tree = tree
	root, ok := d.toJSON()
	if !ok {
		return nil
	}
	return d.object(root, nil)
}

// toJSON converts the document to JSON as kubectl does, and decodes that into maps.
func (d *decoder) toJSON() (any, bool) {
	doubled := 0
	duplicateKeys(d.tree, nil, func(path *field.Path, line int) {
		d.fail(line, path, "is given twice")
		doubled++
	})
	data, err := kyaml.YAMLToJSONStrict(d.doc.data)
	if err != nil && doubled > 0 {
		data, err = kyaml.YAMLToJSON(d.doc.data)
	}
	if err != nil {
		bad := syntaxError(err)
		d.fail(bad.Line, nil, bad.Message)
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		d.fail(1, nil, err.Error())
		return nil, false
	}
	return root, true
}

// object decodes one object, or the objects of a List. A nil path means the whole document.
func (d *decoder) object(v any, path *field.Path) []Object {
	fields, ok := v.(map[string]any)
	if !ok {
		d.failAt(path, fmt.Sprintf("is %s; an object is a map with apiVersion and kind", describeValue(v)))
		return nil
	}
	kind, apiVersion, ok := d.typeMeta(fields, path)
	if !ok {
		return nil
	}
	if kind == "List" || kind == "PodList" {
		return d.list(fields, path)
	}
	if reason := ignoredKind(apiVersion, kind); reason != "" {
		return []Object{d.ignoredObject(fields, kind, reason, path)}
	}
	if group, isForeign := foreignGroup(apiVersion); isForeign {
		d.failAt(path.Child("kind"), unsupportedKind(apiutil.Truncate(kind, 60)+" of "+apiutil.Truncate(group, 60), ""))
		return nil
	}
	k, known := KindOf(kind)
	if !known {
		meant := suggestKind(kind)
		d.failAt(path.Child("kind"), unsupportedKind(kind, meant))
		if k, known = KindOf(meant); !known {
			return nil
		}
		kind = meant // report other mistakes, too
	}
	if apiVersion != k.APIVersion {
		d.failAt(path.Child("apiVersion"), fmt.Sprintf("kind %s has apiVersion %s, not %q", kind, k.APIVersion, apiutil.Truncate(apiVersion, 60)))
	}
	return []Object{d.typedObject(fields, kind, k.New(), path)}
}

func (d *decoder) typeMeta(fields map[string]any, path *field.Path) (kind, apiVersion string, ok bool) {
	ok = true
	for name, to := range map[string]*string{"kind": &kind, "apiVersion": &apiVersion} {
		s, isText := fields[name].(string)
		if *to = s; s == "" || !isText {
			d.failAt(path.Child(name), "Required value: an object has apiVersion and kind, as in: apiVersion: v1, kind: Pod")
			ok = false
		}
	}
	return kind, apiVersion, ok
}

// list splits a List. A List inside another is refused, as is a field that a List does not have.
func (d *decoder) list(fields map[string]any, path *field.Path) []Object {
	if path != nil {
		d.failAt(path.Child("kind"), "a List inside a List is not supported")
		return nil
	}
	c := d.checker(func(*field.Path) {})
	items, _ := fields["items"].([]any)
	if v := fields["items"]; v != nil && items == nil {
		c.mismatch(v, "a list", path.Child("items"))
	}
	delete(fields, "items")
	c.check(reflect.TypeFor[corev1.PodList](), fields, path)
	var objects []Object
	for i, item := range items {
		objects = append(objects, d.object(item, field.NewPath("items").Index(i))...)
	}
	return objects
}

// ignoredObject returns an object that has no meaning here: only its name, and the handler of a RuntimeClass,
// is read.
func (d *decoder) ignoredObject(fields map[string]any, kind, reason string, path *field.Path) Object {
	o := d.newObject(kind, path)
	o.Ignored = reason
	if meta, ok := fields["metadata"].(map[string]any); ok {
		o.name, _ = meta["name"].(string)
	}
	o.Handler, _ = fields["handler"].(string)
	return o
}

func (d *decoder) newObject(kind string, path *field.Path) Object {
	o := Object{File: d.file, Document: d.doc.number, Kind: kind, tree: d.tree, path: path, offset: d.doc.line - 1}
	o.Line = o.lineOf("")
	return o
}

// typedObject decodes an object into an empty one of its Go type.
func (d *decoder) typedObject(fields map[string]any, kind string, value metav1.Object, path *field.Path) Object {
	o := d.newObject(kind, path)
	o.Value = value
	o.Pod, _ = value.(*corev1.Pod)
	c := d.checker(func(p *field.Path) { o.reported = append(o.reported, pathString(p)) })
	if _, secret := value.(*corev1.Secret); secret {
		c.report = redactSecret(c.report)
	}
	c.check(reflect.TypeOf(value), fields, path)
	data, err := json.Marshal(fields)
	if err != nil {
		d.failAt(path, err.Error())
		return o
	}
	// Kubernetes' own decoder decides.
	strict, err := kjson.UnmarshalStrict(data, value)
	if err != nil {
		strict = append(strict, err)
	}
	for _, err := range strict {
		d.failAt(path, err.Error())
	}
	return o
}

// checker returns a checker that reports the document's mistakes. It calls mark with every path that is wrong
// or suggested.
func (d *decoder) checker(mark func(p *field.Path)) *checker {
	return &checker{
		schema: d.schema, tree: d.tree, full: d.errs.full,
		report:    func(p *field.Path, msg string) { d.failAt(p, msg); mark(p) },
		suggested: mark,
	}
}

// failAt reports a mistake at a field.
func (d *decoder) failAt(path *field.Path, msg string) {
	line := 0
	if !d.errs.full() {
		line = lineOf(d.tree, pathString(path))
	}
	d.fail(line, path, msg)
}

// fail reports a mistake at a line of the document.
func (d *decoder) fail(line int, path *field.Path, msg string) {
	d.errs.Add(&Error{File: d.file, Document: d.doc.number, Line: line + d.doc.line - 1, Field: pathString(path), Message: msg})
}
