// Package resource finds what a command line names: manifests in files, and pods, workloads and objects
// by words and selectors.
package resource

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// decodeAll decodes sources with one of manifest's functions, and joins the errors of all.
func decodeAll(sources []Source, decode func(file string, data []byte, namespace string) ([]manifest.Object, error)) ([]manifest.Object, error) {
	var all []manifest.Object
	var errs []error
	for _, src := range sources {
		found, err := decode(src.Name, src.Data, src.Namespace)
		if err != nil {
			errs = append(errs, report.New(report.Usage, "", "%s is not a manifest that podrun can run\n%w", src.Name, err))
			continue
		}
		for i := range found {
			errs = append(errs, src.wrongNamespace(&found[i]))
		}
		all = append(all, found...)
	}
	return all, errors.Join(errs...)
}

// wrongNamespace returns the error for an object in another namespace than -n names, or nil.
func (s *Source) wrongNamespace(o *manifest.Object) error {
	if !s.RejectOtherNamespaces || o.Value == nil || o.Value.GetNamespace() == "" || o.Value.GetNamespace() == s.Namespace {
		return nil
	}
	return report.New(report.Usage, "omit -n, or change metadata.namespace", "%s: %s %s is in namespace %q, but -n is %q",
		Location(o), strings.ToLower(o.Kind), o.Name(), o.Value.GetNamespace(), s.Namespace)
}

// decodeFiles decodes the objects of sources without defaults and validation, except that it sets the
// namespace of an object that has none.
func decodeFiles(sources []Source) ([]manifest.Object, error) {
	return decodeAll(sources, func(file string, data []byte, namespace string) ([]manifest.Object, error) {
		found, err := manifest.Decode(file, data)
		for _, o := range found {
			if o.Value != nil && o.Value.GetName() == "" && o.Value.GetGenerateName() != "" {
				err = errors.Join(err, report.New(report.Usage, "podrun down NAME", "%s: from %s: resource name may not be empty", Location(&o), o.Value.GetGenerateName()))
			}
			if o.Value != nil && o.Value.GetNamespace() == "" && !pod.ObjectKind(o.Kind).ClusterScoped() {
				o.Value.SetNamespace(cmp.Or(namespace, podclient.DefaultNamespace))
			}
		}
		return found, err
	})
}

// Documents are the objects of files by how they are handled, each list in the order of the files.
type Documents struct {
	Pods    []manifest.Object
	Stored  []manifest.Object // ConfigMaps, Secrets and others that pods refer to
	Ignored []manifest.Object // kinds without effect here

	Workloads []manifest.Object // Deployments, Jobs and others that create pods
}

// Load decodes sources. The error joins everything that is wrong with any of them.
func Load(sources []Source) (Documents, error) {
	all, err := decodeAll(sources, func(file string, data []byte, namespace string) ([]manifest.Object, error) {
		return manifest.LoadInNamespace(file, data, namespace, func() string { return rand.String(5) })
	})
	if err != nil {
		return Documents{}, err
	}
	var docs Documents
	first := map[string]string{}
	var errs []error
	for i := range all {
		o := &all[i]
		if o.Value == nil {
			docs.Ignored = append(docs.Ignored, *o)
			continue
		}
		key := strings.ToLower(o.Kind) + " " + o.Value.GetNamespace() + "/" + o.Name()
		if other, ok := first[key]; ok {
			errs = append(errs, report.New(report.Usage, "", "%s is defined twice: in %s and in %s", key, other, Location(o)))
			continue
		}
		first[key] = Location(o)
		switch {
		case o.Pod != nil:
			clearNodeName(o.Pod)
			docs.Pods = append(docs.Pods, *o)
		case o.IsWorkload():
			docs.Workloads = append(docs.Workloads, *o)
		default:
			docs.Stored = append(docs.Stored, *o)
		}
	}
	for _, o := range append(slices.Clone(docs.Pods), SamplePods(docs.Workloads)...) {
		for _, i := range manifest.Images(o.Pod) {
			if err := image.ValidateName(i.Reference); err != nil {
				errs = append(errs, fmt.Errorf("%s: cannot use image %s: %w", Location(&o), i.Reference, err))
			}
		}
	}
	return docs, errors.Join(errs...)
}

// RefuseGenerated rejects objects without a name for a command that finds objects by name.
func RefuseGenerated(docs Documents, command string) error {
	var errs []error
	for _, o := range slices.Concat(docs.Pods, docs.Workloads, docs.Stored) {
		if o.Generated {
			errs = append(errs, report.New(report.Usage, "set metadata.name; podrun up creates one with another name each time", "%s: from %s: cannot use generate name with %s", Location(&o), o.Value.GetGenerateName(), command))
		}
	}
	return errors.Join(errs...)
}

// Location returns the file and document number of an object; of one that a command made, its kind and name.
func Location(o *manifest.Object) string {
	if o.Document == 0 {
		return o.File
	}
	return fmt.Sprintf("%s, document %d", o.File, o.Document)
}

// NamedInFiles returns the objects that files name, as written. With an error it also returns what could be
// read.
func NamedInFiles(env *cmdutil.Env, files []string) ([]manifest.Object, error) {
	sources, err := ReadFiles(env, files)
	if err != nil {
		return nil, err
	}
	return decodeFiles(sources)
}

// PodsInFiles returns the pods that files name. It decodes the files but does not validate them: a pod must
// stay removable when its manifest is no longer valid.
func PodsInFiles(env *cmdutil.Env, dirs store.Dirs, files []string) ([]store.Pod, error) {
	named, err := NamedInFiles(env, files)
	if err != nil {
		return nil, err
	}
	var pods []store.Pod
	for _, o := range named {
		if o.Pod == nil {
			continue
		}
		p, err := ResolvePod(dirs, o.Pod.Namespace, o.Pod.Name)
		if err == nil {
			err = RefuseOtherProject(p, o.Pod, "podrun down "+p.Name+" removes it")
		}
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// ErrOtherProject is the error for a pod that comes from another compose project.
var ErrOtherProject = errors.New("is of another compose project")

// RefuseOtherProject returns an error if a pod comes from another compose project than a manifest of its name.
func RefuseOtherProject(p store.Pod, new *corev1.Pod, hint string) error {
	project := new.Annotations[podutil.AnnotationComposeProject]
	if project == "" {
		return nil
	}
	text, err := p.Manifest()
	if err != nil {
		return nil // it does not exist, or is partly removed
	}
	old, err := manifest.Unmarshal(text)
	if err != nil {
		return nil // the commands that need it report the error
	}
	if other := old.Annotations[podutil.AnnotationComposeProject]; other != "" && other != project {
		return report.New(report.Failure, hint, "pod %s %w: %s, not %s", p.Name, ErrOtherProject, other, project)
	}
	return nil
}

// NodeName returns the machine's name in the form that a kubelet uses; "" if it is not a valid node name.
func NodeName() string {
	name, err := os.Hostname()
	name = strings.ToLower(name)
	if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// IsOnThisNode reports whether the nodeAffinity of a PersistentVolume matches this machine, with the labels
// that a kubelet sets.
func IsOnThisNode(o *manifest.Object) bool {
	name := NodeName()
	return conversion.IsOnNode(o.Value.(*corev1.PersistentVolume), name, map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
	})
}

// setNodeName sets the node name of a pod that is printed, as a scheduler does.
func setNodeName(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		p.Spec.NodeName = NodeName()
	}
}

// clearNodeName removes the node name from a manifest, which may be the printed form of a pod.
func clearNodeName(p *corev1.Pod) {
	if p.Spec.NodeName == NodeName() {
		p.Spec.NodeName = ""
	}
}

// RefuseMixed rejects a unit with both pods and workloads: its main process handles only one of the two.
func RefuseMixed(docs Documents) error {
	if len(docs.Pods) > 0 && len(docs.Workloads) > 0 {
		return report.New(report.Usage, "put them into files of their own, with a unit each", "a unit runs either Pods or workloads: %s has a Pod, %s a %s",
			Location(&docs.Pods[0]), Location(&docs.Workloads[0]), docs.Workloads[0].Kind)
	}
	return nil
}

// ObjectsInFiles returns the objects that files name, without validating them.
func ObjectsInFiles(env *cmdutil.Env, files []string) ([]kindnames.ObjectRef, error) {
	named, err := NamedInFiles(env, files)
	var list []kindnames.ObjectRef
	for _, o := range named {
		for _, k := range kindnames.All() {
			if string(k.Kind) == o.Kind {
				list = append(list, kindnames.ObjectRef{Kind: k.Kind, Namespace: o.Value.GetNamespace(), Name: o.Name()})
			}
		}
	}
	return list, err
}

// WorkloadsInFiles returns the existing workloads that files name, and the kinds and names of the others.
func WorkloadsInFiles(env *cmdutil.Env, dirs store.Dirs, files []string) (found []store.Workload, missing []string, err error) {
	named, err := NamedInFiles(env, files)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, o := range named {
		if !o.IsWorkload() {
			continue
		}
		kind, _, _ := kindnames.ParseObjects([]string{o.Kind})
		v, err := FindWorkload(dirs, kind, o.Value.GetNamespace(), o.Name())
		if errors.Is(err, cmdutil.ErrNotFound) {
			missing = append(missing, kindnames.Of(pod.ObjectKind(o.Kind))+"/"+o.Name())
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, v.Workload)
	}
	return found, missing, errors.Join(errs...)
}
