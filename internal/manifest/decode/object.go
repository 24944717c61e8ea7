package decode

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/pod"
)

// Object is one object of a file.
type Object struct {
	File     string
	Document int // 1-based
	Line     int // where the object begins

	Kind string

	// Value is the object, of the Go type of its kind: as written when Decode returned it, and with the
	// API server's defaults when Load did. It is nil for ignored ones.
	Value     metav1.Object
	Generated bool        // by Load: the name is made from metadata.generateName
	Handler   string      // of a RuntimeClass
	Ignored   string      // why its kind is ignored; "" if it is not
	Pod       *corev1.Pod // the Value of a Pod; nil for any other kind

	Findings  []support.Finding   // by Load: how podrun supports each field that is set
	Effective resources.Effective // by Load, for a Pod: its effective resources and its containers'
	Stored    *pod.Object         // by Load: a ConfigMap, Secret, … in the stored form, without its uid

	tree     *yaml.Node
	offset   int         // lines of the file before the document
	path     *field.Path // position of the object in its document: items[3] of a List, else nil
	reported []string    // paths in the document with a reported mistake
	name     string      // of an ignored object
}

// documentPath converts a path in the object to one in the document.
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

// lineOf returns the line in the file of a field of the object.
func (o *Object) lineOf(path string) int {
	return lineOf(o.tree, o.documentPath(path)) + o.offset
}

// Name returns the object's name.
func (o *Object) Name() string {
	if o.Value == nil {
		return o.name
	}
	return o.Value.GetName()
}

// SetDefaultNamespace sets the namespace of an object that names none.
func (o *Object) SetDefaultNamespace(home string) {
	if o.Value.GetNamespace() == "" {
		o.Value.SetNamespace(home)
	}
}

// Report reports invalid fields, and the refused ones among the Findings.
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
		// If the API server refuses the field too, its message is enough.
		if f.Support == support.Refused && !impossible[f.Path] {
			o.Fail(errs, f.Path, f.Note)
		}
	}
}

// ForPod returns another object with the same position in the file: a pod that the object makes.
func (o *Object) ForPod(p *corev1.Pod) *Object {
	return &Object{File: o.File, Document: o.Document, Line: o.Line, Kind: "Pod", Value: p, Pod: p, Effective: o.Effective, tree: o.tree, offset: o.offset, path: o.path}
}

// IsWorkload reports whether the object is a workload.
func (o *Object) IsWorkload() bool {
	return o.Value != nil && slices.Contains(pod.Workloads(), pod.ObjectKind(o.Kind))
}

// FindFields returns a Finding for every field that the object sets, from its kind's support table. An
// ignored object has none.
func (o *Object) FindFields() []support.Finding {
	if o.Value == nil {
		return nil
	}
	return support.Find(o.Kind, o.Value)
}

// TimeZone returns the time zone that a workload names, or "".
func (o *Object) TimeZone() string {
	if c, ok := o.Value.(*batchv1.CronJob); ok && c.Spec.TimeZone != nil {
		return *c.Spec.TimeZone
	}
	return ""
}

// UnknownTimeZone returns the error of a workload that names an unknown time zone.
func (o *Object) UnknownTimeZone() error {
	errs := &Errors{}
	o.Fail(errs, "spec.timeZone", field.Invalid(nil, o.TimeZone(), "unknown time zone "+o.TimeZone()).ErrorBody())
	return errs.Err()
}

// Fail adds a mistake at a field of the object.
func (o *Object) Fail(errs *Errors, path, msg string) {
	errs.Add(&Error{File: o.File, Document: o.Document, Line: o.lineOf(path), Field: o.documentPath(path), Message: msg})
}

// alreadyReported reports whether a mistake only follows from a reported one: a part that the decoder
// removed would be reported again, as missing.
func (o *Object) alreadyReported(bad *field.Error) bool {
	path := o.documentPath(bad.Field)
	for _, reported := range o.reported {
		if within(path, reported) || bad.BadValue == "" && within(reported, path) {
			return true
		}
	}
	return false
}

// within reports whether a field is another one or lies in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
