package build

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
)

// Difference is the difference between a manifest and the one a pod was made from.
type Difference struct {
	// Resources reports that requests or limits of CPU or memory differ, or the rule for the pod's: they are
	// resized while the pod runs.
	Resources bool
	// Images names the containers whose image differs: each is restarted alone.
	Images []string
	// MutableSpec reports that activeDeadlineSeconds or tolerations differ.
	MutableSpec bool
	// RecordOnly reports differences that the stored manifest has to show and that change nothing in the
	// running pod: labels or annotations on which podrun does not act, an image or how it is pulled
	// (image, imagePullPolicy, imagePullSecrets), or a later generation.
	RecordOnly bool
	// Ephemeral has the indexes of added ephemeral containers.
	Ephemeral []int
	// Immutable has the paths of fields that differ and cannot be changed while the pod runs, in the
	// order of the manifest.
	Immutable []string
}

// Empty reports whether the manifests are the same.
func (d *Difference) Empty() bool {
	return !d.Resources && !d.MutableSpec && !d.RecordOnly && len(d.Images)+len(d.Ephemeral)+len(d.Immutable) == 0
}

// Compare returns the difference of two Pods with their defaults, without the fields that
// podutil.FillSystemFields sets.
func Compare(old, new *corev1.Pod) (*Difference, error) {
	var trees [2]any
	var ephemeral [2][]corev1.EphemeralContainer
	for i, p := range []*corev1.Pod{old, new} {
		p = p.DeepCopy()
		podutil.ClearSystemFields(p)
		p.GenerateName = "" // it has no meaning for a pod with a name
		defaulting.SetPullPolicies(&p.Spec)
		p.Status, ephemeral[i], p.Spec.EphemeralContainers = corev1.PodStatus{}, p.Spec.EphemeralContainers, nil
		var err error
		if trees[i], err = apiutil.ToUnstructured(p); err != nil {
			return nil, err
		}
	}
	d := &Difference{RecordOnly: new.Generation > old.Generation}
	walkDifferences(nil, trees[0], trees[1], func(path *field.Path) { d.add(path.String(), new) })
	d.addEphemeral(ephemeral[0], ephemeral[1])
	return d, nil
}

// walkDifferences visits the deepest paths at which two JSON values differ.
func walkDifferences(path *field.Path, a, b any, visit func(*field.Path)) {
	if am, ok := a.(map[string]any); ok || a == nil {
		if bm, ok := b.(map[string]any); (ok || b == nil) && len(am)+len(bm) > 0 {
			keys := slices.Concat(slices.Collect(maps.Keys(am)), slices.Collect(maps.Keys(bm)))
			slices.Sort(keys)
			for _, k := range slices.Compact(keys) {
				walkDifferences(decode.ChildPath(path, k), am[k], bm[k], visit)
			}
			return
		}
	}
	if al, ok := a.([]any); ok {
		if bl, ok := b.([]any); ok {
			walkLists(path, al, bl, visit)
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		visit(path)
	}
}

// walkLists visits the differing items of two lists. A list of strings is visited as a whole, and an added
// or removed item as one.
func walkLists(path *field.Path, a, b []any, visit func(*field.Path)) {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) {
			visit(path.Index(i))
			continue
		}
		if _, deep := a[i].(map[string]any); !deep && !reflect.DeepEqual(a, b) {
			visit(path)
			return
		}
		walkDifferences(path.Index(i), a[i], b[i], visit)
	}
}

// add classifies one path that differs.
func (d *Difference) add(path string, p *corev1.Pod) {
	switch steps := decode.SplitPath(path); {
	case steps[0] == "metadata" && len(steps) > 1 && (steps[1] == "labels" || steps[1] == "annotations") && isUnusedMetadata(steps):
		d.RecordOnly = true
	case resizable(steps):
		d.Resources = true
	case len(steps) > 1 && steps[0] == "spec" && (steps[1] == "activeDeadlineSeconds" || steps[1] == "tolerations"):
		d.MutableSpec = true
	case len(steps) == 4 && (steps[1] == "containers" || steps[1] == "initContainers") && (steps[3] == "image" || steps[3] == "imagePullPolicy"):
		// How an image is pulled does not matter for one that is in use.
		if steps[3] == "image" {
			d.Images = append(d.Images, containerAt(p, steps[1], steps[2]))
		}
		d.RecordOnly = true
	case len(steps) > 1 && steps[0] == "spec" && steps[1] == "imagePullSecrets": // for later pulls
		d.RecordOnly = true
	default:
		d.Immutable = append(d.Immutable, path)
	}
}

// isUnusedMetadata reports whether podrun ignores a label or an annotation.
func isUnusedMetadata(steps []string) bool {
	if len(steps) < 3 {
		return true
	}
	domain, _, _ := strings.Cut(steps[2], "/")
	return domain != "podrun.dev" && !strings.HasSuffix(domain, ".podrun.dev") && domain != "apps.kruise.io" || steps[2] == podutil.AnnotationLabels
}

// resizable reports whether a path leads to CPU or memory of a container or the pod, or to the rule for them.
func resizable(steps []string) bool {
	if len(steps) == 3 && steps[1] == "annotations" && steps[2] == podutil.AnnotationPodLimits {
		return true
	}
	if len(steps) > 2 && (steps[1] == "containers" || steps[1] == "initContainers") {
		steps = steps[2:] // [0] resources limits cpu
	}
	if len(steps) != 4 || steps[1] != "resources" {
		return false
	}
	return (steps[2] == "limits" || steps[2] == "requests") && (steps[3] == "cpu" || steps[3] == "memory")
}

func containerAt(p *corev1.Pod, list, index string) string {
	containers := p.Spec.Containers
	if list == "initContainers" {
		containers = p.Spec.InitContainers
	}
	for i := range containers {
		if fmt.Sprint(i) == index {
			return containers[i].Name
		}
	}
	return ""
}
