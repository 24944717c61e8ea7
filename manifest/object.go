package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// Object is one object of a file.
type object struct {
	File     string
	Document int // 1-based
	Line     int // where the object begins

	Kind string

	// Value is the object, of the Go type of its kind, as written when Decode returned
	// it and with the API server's defaults when Load did. Idle ones have none.
	Value metav1.Object
	Idle  string      // why an object of its kind means nothing here; "" if it does
	Pod   *corev1.Pod // the Value of a Pod; nil for any other kind

	Findings  []Finding   // by Load: what podrun makes of each field that is set
	Effective Effective   // by Load, of a Pod: what it and its containers may use
	Stored    *pod.Object // by Load: a ConfigMap, Secret, … as it is kept; its uid is still to be given

	tree   *yaml.Node
	offset int         // lines of the file before the document
	path   *field.Path // where the object lies in its document: items[3] of a List, else nil
	told   []string    // paths in the document that a mistake was already reported for
	name   string      // of an idle object
}

// at turns a path in the object into one in the document.
func (o *object) at(path string) string {
	switch prefix := text(o.path); {
	case prefix == "":
		return path
	case path == "":
		return prefix
	default:
		return prefix + "." + path
	}
}

// line gives the line in the file of a field of the object.
func (o *object) line(path string) int {
	return lineOf(o.tree, o.at(path)) + o.offset
}

// Name is what the object is called.
func (o *object) Name() string {
	if o.Value == nil {
		return o.name
	}
	return o.Value.GetName()
}

// settle puts an object that names no namespace into one.
func (o *object) settle(home string) {
	if o.Value.GetNamespace() == "" {
		o.Value.SetNamespace(home)
	}
}

// judge reports what is invalid, and of the Findings what is refused.
func (o *object) judge(invalid field.ErrorList, errs *errorList) {
	impossible := map[string]bool{}
	for _, bad := range invalid {
		if o.wasTold(bad) {
			continue
		}
		if s, ok := bad.BadValue.(string); ok {
			bad.BadValue = clip(s, 100)
		}
		o.fail(errs, bad.Field, bad.ErrorBody())
		impossible[bad.Field] = bad.Type == field.ErrorTypeForbidden || bad.Type == field.ErrorTypeNotSupported
	}
	for i := range o.Findings {
		f := &o.Findings[i]
		f.Line = o.line(f.Path)
		// What no Kubernetes takes needs no word on what podrun takes.
		if f.Support == Refused && !impossible[f.Path] {
			o.fail(errs, f.Path, f.Note)
		}
	}
}

// with is another object that stands at the same place of the file: a pod that it makes.
func (o *object) with(p *corev1.Pod) *object {
	return &object{File: o.File, Document: o.Document, Line: o.Line, Kind: "Pod", Value: p, Pod: p, Effective: o.Effective, tree: o.tree, offset: o.offset, path: o.path}
}

// MakesPods says whether the object is a workload.
func (o *object) MakesPods() bool {
	return o.Value != nil && slices.Contains(pod.Workloads(), pod.ObjectKind(o.Kind))
}

// Written looks every field that the object sets up in its kind's support table. An idle
// one has none.
func (o *object) Written() []Finding {
	if o.Value == nil {
		return nil
	}
	return findingsOf(o.Kind, o.Value)
}

// Zone is the time zone that a workload names, or "".
func (o *object) Zone() string {
	if c, ok := o.Value.(*batchv1.CronJob); ok && c.Spec.TimeZone != nil {
		return *c.Spec.TimeZone
	}
	return ""
}

// BadZone is the mistake of a workload that names a zone which nobody knows.
func (o *object) BadZone() error {
	errs := &errorList{}
	o.fail(errs, "spec.timeZone", field.Invalid(nil, o.Zone(), "unknown time zone "+o.Zone()).ErrorBody())
	return errs.result()
}

// fail adds a mistake at a field of the object.
func (o *object) fail(errs *errorList, path, msg string) {
	errs.add(&oneError{File: o.File, Document: o.Document, Line: o.line(path), Field: o.at(path), Message: msg})
}

// wasTold says whether a mistake only follows from one that is known already: what
// the decoder took out would be reported again, as missing.
func (o *object) wasTold(bad *field.Error) bool {
	path := o.at(bad.Field)
	for _, told := range o.told {
		if within(path, told) || bad.BadValue == "" && within(told, path) {
			return true
		}
	}
	return false
}

// within says whether a field is another one or lies in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
