package decode

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/manifest/apiutil"
	"github.com/podrun/podrun/manifest/resources"
	"github.com/podrun/podrun/manifest/support"
	"github.com/podrun/podrun/pod"
)

// Object is one object of a file.
type Object struct {
	File     string
	Document int // 1-based
	Line     int // where the object begins

	Kind string

	// Value is the object, of the Go type of its kind, as written when Decode returned
	// it and with the API server's defaults when Load did. Idle ones have none.
	Value   metav1.Object
	Ignored string      // why an object of its kind means nothing here; "" if it does
	Pod     *corev1.Pod // the Value of a Pod; nil for any other kind

	Findings  []support.Finding   // by Load: what podrun makes of each field that is set
	Effective resources.Effective // by Load, of a Pod: what it and its containers may use
	Stored    *pod.Object         // by Load: a ConfigMap, Secret, … as it is kept; its uid is still to be given

	tree     *yaml.Node
	offset   int         // lines of the file before the document
	path     *field.Path // where the object lies in its document: items[3] of a List, else nil
	reported []string    // paths in the document that a mistake was already reported for
	name     string      // of an idle object
}

// documentPath turns a path in the object into one in the document.
func (o *Object) documentPath(path string) string {
	switch prefix := pathString(o.path); {
	case prefix == "":
		return path
	case path == "":
		return prefix
	default:
		return prefix + "." + path
	}
}

// lineOf gives the line in the file of a field of the object.
func (o *Object) lineOf(path string) int {
	return lineOf(o.tree, o.documentPath(path)) + o.offset
}

// Name is what the object is called.
func (o *Object) Name() string {
	if o.Value == nil {
		return o.name
	}
	return o.Value.GetName()
}

// SetDefaultNamespace puts an object that names no namespace into one.
func (o *Object) SetDefaultNamespace(home string) {
	if o.Value.GetNamespace() == "" {
		o.Value.SetNamespace(home)
	}
}

// Report reports what is invalid, and of the Findings what is refused.
func (o *Object) Report(invalid field.ErrorList, errs *Errors) {
	impossible := map[string]bool{}
	for _, bad := range invalid {
		if o.alreadyReported(bad) {
			continue
		}
		if s, ok := bad.BadValue.(string); ok {
			bad.BadValue = apiutil.Truncate(s, 100)
		}
		o.Fail(errs, bad.Field, bad.ErrorBody())
		impossible[bad.Field] = bad.Type == field.ErrorTypeForbidden || bad.Type == field.ErrorTypeNotSupported
	}
	for i := range o.Findings {
		f := &o.Findings[i]
		f.Line = o.lineOf(f.Path)
		// What no Kubernetes takes needs no word on what podrun takes.
		if f.Support == support.Refused && !impossible[f.Path] {
			o.Fail(errs, f.Path, f.Note)
		}
	}
}

// ForPod is another object that stands at the same place of the file: a pod that it makes.
func (o *Object) ForPod(p *corev1.Pod) *Object {
	return &Object{File: o.File, Document: o.Document, Line: o.Line, Kind: "Pod", Value: p, Pod: p, Effective: o.Effective, tree: o.tree, offset: o.offset, path: o.path}
}

// IsWorkload says whether the object is a workload.
func (o *Object) IsWorkload() bool {
	return o.Value != nil && slices.Contains(pod.Workloads(), pod.ObjectKind(o.Kind))
}

// SetFields looks every field that the object sets up in its kind's support table. An idle
// one has none.
func (o *Object) SetFields() []support.Finding {
	if o.Value == nil {
		return nil
	}
	return support.Find(o.Kind, o.Value)
}

// TimeZone is the time zone that a workload names, or "".
func (o *Object) TimeZone() string {
	if c, ok := o.Value.(*batchv1.CronJob); ok && c.Spec.TimeZone != nil {
		return *c.Spec.TimeZone
	}
	return ""
}

// UnknownTimeZone is the mistake of a workload that names a zone which nobody knows.
func (o *Object) UnknownTimeZone() error {
	errs := &Errors{}
	o.Fail(errs, "spec.timeZone", field.Invalid(nil, o.TimeZone(), "unknown time zone "+o.TimeZone()).ErrorBody())
	return errs.Err()
}

// Fail adds a mistake at a field of the object.
func (o *Object) Fail(errs *Errors, path, msg string) {
	errs.Add(&Error{File: o.File, Document: o.Document, Line: o.lineOf(path), Field: o.documentPath(path), Message: msg})
}

// alreadyReported says whether a mistake only follows from one that is known already: what
// the decoder took out would be reported again, as missing.
func (o *Object) alreadyReported(bad *field.Error) bool {
	path := o.documentPath(bad.Field)
	for _, told := range o.reported {
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
