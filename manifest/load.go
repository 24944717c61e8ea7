package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
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
		complete(o, namespace, errs)
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

// complete fills in what an Object has beyond its text, and reports what is wrong. home is
// the namespace that it has if it names none.
func complete(o *Object, home string, errs *Errors) {
	switch {
	case o.Pod != nil:
		completePod(o, home, errs)
	case o.MakesPods():
		completeWorkload(o, home, errs)
	default:
		completeStored(o, home, errs)
	}
}

func completePod(o *Object, home string, errs *Errors) {
	o.Findings = Findings(o.Pod)
	o.Effective = EffectiveResources(o.Pod)
	forget(o.Pod)
	o.settle(home)
	defaults(o.Pod)
	o.judge(Validate(o.Pod), errs)
}

func completeStored(o *Object, home string, errs *Errors) {
	o.Findings = o.Written()
	forgetMeta(metaOf(o.Value))
	o.settle(home)
	DefaultObject(o.Value)
	o.judge(ValidateObject(o.Value), errs)
	o.Stored = stored(o.Value)
}

// completeWorkload looks at the pods that a workload would make, too.
func completeWorkload(o *Object, home string, errs *Errors) {
	o.Findings = o.Written()
	forgetMeta(metaOf(o.Value))
	o.settle(home)
	t := templateOf(o.Value)
	path := pathOfTemplate(pod.ObjectKind(o.Kind))
	sample := samplePod(o.Value)
	for _, f := range together(sample) {
		f.Path = path + "." + f.Path
		o.Findings = append(o.Findings, f)
	}
	forget(sample)
	defaults(sample)
	unset := unsetPull(&sample.Spec)
	defaultPull(&sample.Spec)
	t.Spec = sample.Spec
	t.ObjectMeta = metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}
	o.Effective = EffectiveResources(sample)
	defaultWorkload(o.Value)
	invalid := validateWorkload(o.Value)
	sample.Spec = *sample.Spec.DeepCopy()
	mountClaims(&sample.Spec, o.Value, 0)
	if len(t.Spec.EphemeralContainers) > 0 {
		invalid = append(invalid, field.Forbidden(field.NewPath(path, "spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	for _, bad := range Validate(sample) {
		if bad.Field == "metadata.name" {
			continue
		}
		bad.Field = path + "." + bad.Field
		invalid = append(invalid, bad)
	}
	o.judge(invalid, errs)
	o.Stored = storedWorkload(o.Value)
	o.Stored.Kind, o.Stored.UnsetPull = pod.ObjectKind(o.Kind), unset
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

// Made is Load for an object that a command has put together: a ConfigMap, a Secret. It
// changes it. The error is an *Errors.
func Made(kind string, object metav1.Object) (*Object, error) {
	o := &Object{File: kind + " " + object.GetName(), Kind: kind, Value: object}
	errs := &Errors{}
	completeStored(o, "", errs)
	if err := errs.result(); err != nil {
		return nil, err
	}
	return o, nil
}
