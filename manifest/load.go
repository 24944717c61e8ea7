package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Load reads the objects of a file and makes sure that podrun can do what they say: it
// decodes, holds every field against the support table of its kind, fills in the API
// server's defaults and validates. The error is an *Errors with every mistake of every
// document; with one, nothing is returned.
func Load(file string, data []byte) ([]Object, error) {
	return LoadIn(file, data, corev1.NamespaceDefault)
}

// LoadIn is Load with the namespace of objects that name none; "" is the default one.
func LoadIn(file string, data []byte, namespace string) ([]Object, error) {
	objects, errs := decode(file, data)
	seen := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		if o.Value == nil {
			continue
		}
		k, _ := kindOf(o.Kind)
		o.home = namespace
		k.complete(o, errs)
		key := o.Kind + " " + o.Value.GetNamespace() + "/" + o.Name()
		if seen[key] && o.Name() != "" {
			o.fail(errs, "metadata.name", field.Duplicate(nil, o.Name()).ErrorBody()+": another "+o.Kind+" of this file has it")
		}
		seen[key] = true
	}
	if err := errs.result(); err != nil {
		return nil, err
	}
	return objects, nil
}

// Recorded is the Pod of a text that Marshal has written after Stamp, as it was loaded.
func Recorded(text []byte) (*Object, error) {
	p, err := Unmarshal(text)
	if err != nil {
		return nil, err
	}
	Unstamp(p)
	return &Object{File: "pod " + p.Name, Kind: "Pod", Value: p, Pod: p, Effective: EffectiveResources(p)}, nil
}

// Name is what the object is called.
func (o *Object) Name() string {
	if o.Value == nil {
		return o.name
	}
	return o.Value.GetName()
}

// complete fills in what an Object has beyond its Pod, and reports what is wrong.
func (o *Object) complete(errs *Errors) {
	o.Findings = Findings(o.Pod)
	o.Effective = EffectiveResources(o.Pod)
	forget(o.Pod)
	o.settle()
	defaults(o.Pod)
	o.judge(Validate(o.Pod), errs)
}

// settle puts an object that names no namespace into the one of LoadIn.
func (o *Object) settle() {
	if o.Value.GetNamespace() == "" {
		o.Value.SetNamespace(o.home)
	}
}

// judge reports what is invalid, and of the Findings what is refused.
func (o *Object) judge(invalid field.ErrorList, errs *Errors) {
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

// forget drops what an API server writes into a Pod, as an API server does when
// one is created from a file that kubectl get -o yaml made; but for its generation, by which
// whoever has given it sees what the pod was made of.
func forget(p *corev1.Pod) {
	generation := p.Generation
	forgetMeta(&p.ObjectMeta)
	p.Generation = max(generation, 0)
	p.Status = corev1.PodStatus{}
}

func forgetMeta(m *metav1.ObjectMeta) {
	m.UID, m.ResourceVersion, m.SelfLink, m.Generation = "", "", "", 0
	m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	m.ManagedFields = nil
}

func (o *Object) fail(errs *Errors, path, msg string) {
	errs.add(&Error{File: o.File, Document: o.Document, Line: o.line(path), Field: o.at(path), Message: msg})
}

// wasTold says whether a mistake only follows from one that is known already: what
// the decoder took out would be reported again, as missing.
func (o *Object) wasTold(bad *field.Error) bool {
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
