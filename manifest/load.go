package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Load reads the Pods of a file and makes sure that they can be run: it decodes,
// holds every field against the support table, fills in the API server's defaults
// and validates. The error is an *Errors with every mistake of every document;
// with one, nothing is returned.
func Load(file string, data []byte) ([]Object, error) {
	objects, errs := decode(file, data)
	seen := map[string]*Object{}
	for i := range objects {
		o := &objects[i]
		o.complete(errs)
		key := o.Pod.Namespace + "/" + o.Pod.Name
		if first := seen[key]; first != nil && o.Pod.Name != "" {
			o.fail(errs, "metadata.name", field.Duplicate(nil, o.Pod.Name).ErrorBody()+": another Pod of this file has it")
		}
		seen[key] = o
	}
	if err := errs.result(); err != nil {
		return nil, err
	}
	return objects, nil
}

// complete fills in what an Object has beyond its Pod, and reports what is wrong.
func (o *Object) complete(errs *Errors) {
	o.Findings = Findings(o.Pod)
	o.Effective = EffectiveResources(o.Pod)
	Default(o.Pod)
	forbidden := map[string]bool{}
	for _, bad := range Validate(o.Pod) {
		if o.wasTold(bad.Field) {
			continue
		}
		o.fail(errs, bad.Field, bad.ErrorBody())
		forbidden[bad.Field] = bad.Type == field.ErrorTypeForbidden
	}
	for i := range o.Findings {
		f := &o.Findings[i]
		f.Line = o.line(f.Path)
		// What no Kubernetes takes needs no word on what podrun takes.
		if f.Support == Refused && !forbidden[f.Path] {
			o.fail(errs, f.Path, f.Note)
		}
	}
}

func (o *Object) fail(errs *Errors, path, msg string) {
	errs.add(&Error{File: o.File, Document: o.Document, Line: o.line(path), Field: o.at(path), Message: msg})
}

// wasTold says whether a field, or what it lies in, is known to be wrong already:
// what the decoder took out would only be reported again, as missing.
func (o *Object) wasTold(path string) bool {
	path = o.at(path)
	for _, told := range o.told {
		if rest, ok := strings.CutPrefix(path, told); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
