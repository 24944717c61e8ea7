package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
)

// Load reads the objects of a file and ensures that podrun supports them. It decodes, checks every field
// against the support table of its kind, fills in the API server's defaults and validates. The error is an
// *Errors with every mistake of every document; then no object is returned.
func Load(file string, data []byte) ([]Object, error) {
	return LoadInNamespace(file, data, corev1.NamespaceDefault, nil)
}

// LoadInNamespace is Load with the namespace for objects that name none; "" is the default one. An object
// with metadata.generateName and no name gets one, which ends in what suffix returns, unless suffix is nil.
func LoadInNamespace(file string, data []byte, namespace string, suffix func() string) ([]Object, error) {
	objects, errs := decode.Parse(file, data)
	objects = resolveRuntimeClasses(objects, errs)
	names := map[string]bool{}
	for i := range objects {
		o := &objects[i]
		if o.Value == nil {
			continue
		}
		if m := apiutil.ObjectMeta(o.Value); m.Name == "" && m.GenerateName != "" && suffix != nil {
			m.Name, o.Generated = workloads.NamePrefix(m.GenerateName)+suffix(), true
		}
		finishObject(o, namespace, errs)
		key := o.Kind + " " + o.Value.GetNamespace() + "/" + o.Name()
		if names[key] && o.Name() != "" {
			o.Fail(errs, "metadata.name", field.Duplicate(nil, o.Name()).ErrorBody()+": another "+o.Kind+" of this file has it")
		}
		names[key] = true
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return objects, nil
}

// finishObject fills in what follows from a decoded object (Findings, Effective, defaults, Stored), and
// reports mistakes. namespace is for an object that sets none.
func finishObject(o *Object, namespace string, errs *Errors) {
	switch {
	case o.Pod != nil:
		finishPod(o, namespace, errs)
	case o.IsWorkload():
		finishWorkload(o, namespace, errs)
	default:
		finishStored(o, namespace, errs)
	}
}

func finishPod(o *Object, namespace string, errs *Errors) {
	o.Findings = support.FindPod(o.Pod)
	o.Effective = resources.ComputeEffective(o.Pod)
	dropServerFields(o.Pod)
	o.SetDefaultNamespace(namespace)
	defaulting.SetDefaultsButPullPolicy(o.Pod)
	o.Report(validation.ValidatePod(o.Pod), errs)
}

func finishStored(o *Object, namespace string, errs *Errors) {
	o.Findings = o.FindFields()
	dropServerMetadata(apiutil.ObjectMeta(o.Value))
	o.SetDefaultNamespace(namespace)
	defaulting.SetObjectDefaults(o.Value)
	o.Report(validation.ValidateObject(o.Value), errs)
	o.Stored = conversion.FromKubernetes(o.Value)
}

// finishWorkload does what finishObject does, for a workload and for the pods that it would make.
func finishWorkload(o *Object, namespace string, errs *Errors) {
	o.Findings = o.FindFields()
	dropServerMetadata(apiutil.ObjectMeta(o.Value))
	o.SetDefaultNamespace(namespace)
	t := conversion.PodTemplate(o.Value)
	path := support.TemplatePath(pod.ObjectKind(o.Kind))
	sample := workloads.PodFromTemplate(o.Value)
	for _, f := range support.PodConflicts(sample) {
		f.Path = path + "." + f.Path
		o.Findings = append(o.Findings, f)
	}
	dropServerFields(sample)
	defaulting.SetDefaultsButPullPolicy(sample)
	unset := defaulting.UnsetPullPolicies(&sample.Spec)
	defaulting.SetPullPolicies(&sample.Spec)
	t.Spec = sample.Spec
	t.ObjectMeta = metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}
	o.Effective = resources.ComputeEffective(sample)
	defaulting.SetWorkloadDefaults(o.Value)
	invalid := validation.ValidateWorkload(o.Value)
	sample.Spec = *sample.Spec.DeepCopy()
	workloads.MountClaims(&sample.Spec, o.Value, 0)
	if len(t.Spec.EphemeralContainers) > 0 {
		invalid = append(invalid, field.Forbidden(field.NewPath(path, "spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	for _, bad := range validation.ValidatePod(sample) {
		if bad.Field == "metadata.name" {
			continue
		}
		bad.Field = path + "." + bad.Field
		invalid = append(invalid, bad)
	}
	o.Report(invalid, errs)
	o.Stored = conversion.WorkloadFromKubernetes(o.Value)
	o.Stored.Kind, o.Stored.DefaultedPullPolicies = pod.ObjectKind(o.Kind), unset
}

// dropServerFields removes the fields that an API server writes into a Pod, as an API server does when a Pod
// is created from a file that kubectl get -o yaml made. It keeps the generation, by which its author
// sees which manifest the pod was made from.
func dropServerFields(p *corev1.Pod) {
	generation := p.Generation
	dropServerMetadata(&p.ObjectMeta)
	p.Generation = max(generation, 0)
	p.Status = corev1.PodStatus{}
}

func dropServerMetadata(m *metav1.ObjectMeta) {
	m.UID, m.ResourceVersion, m.SelfLink, m.Generation = "", "", "", 0
	m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	m.ManagedFields = nil
}
