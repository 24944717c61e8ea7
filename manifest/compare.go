package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// difference is what a manifest changes about a pod that was made from another.
type difference struct {
	// Resources says that requests or limits of CPU or memory differ: they are resized
	// while the pod runs.
	Resources bool
	// Images names the containers whose image differs: each is restarted alone.
	Images []string
	// Lifetime says that activeDeadlineSeconds or tolerations differ.
	Lifetime bool
	// Labels says that labels or annotations differ which podrun does not act on, or that
	// a later generation was given.
	Labels bool
	// Ephemeral are the indexes of ephemeral containers that are added.
	Ephemeral []int
	// Fixed are the paths of fields that differ and cannot be changed while the pod
	// lives, in the order of the manifest.
	Fixed []string
}

// None says whether the manifests are the same.
func (d *difference) None() bool {
	return !d.Resources && !d.Lifetime && !d.Labels && len(d.Images)+len(d.Ephemeral)+len(d.Fixed) == 0
}

// compare tells two Pods with their defaults apart, without what makes each pod
// itself: see Stamp.
func compare(old, new *corev1.Pod) (*difference, error) {
	var trees [2]any
	var ephemeral [2][]corev1.EphemeralContainer
	for i, p := range []*corev1.Pod{old, new} {
		p = p.DeepCopy()
		Unstamp(p)
		defaultPull(&p.Spec)
		p.Status, ephemeral[i], p.Spec.EphemeralContainers = corev1.PodStatus{}, p.Spec.EphemeralContainers, nil
		var err error
		if trees[i], err = generic(p); err != nil {
			return nil, err
		}
	}
	d := &difference{Labels: new.Generation > old.Generation}
	walkDifferences(nil, trees[0], trees[1], func(path *field.Path) { d.note(path.String(), new) })
	d.noteEphemeral(ephemeral[0], ephemeral[1])
	return d, nil
}

// walkDifferences visits the deepest paths at which two JSON values differ.
func walkDifferences(path *field.Path, a, b any, visit func(*field.Path)) {
	if am, ok := a.(map[string]any); ok || a == nil {
		if bm, ok := b.(map[string]any); (ok || b == nil) && len(am)+len(bm) > 0 {
			keys := slices.Concat(slices.Collect(maps.Keys(am)), slices.Collect(maps.Keys(bm)))
			slices.Sort(keys)
			for _, k := range slices.Compact(keys) {
				walkDifferences(under(path, k), am[k], bm[k], visit)
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

// walkLists visits what differs in the items of two lists; lists of words as a whole,
// and an item more or less as one.
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

// note files one path that differs.
func (d *difference) note(path string, p *corev1.Pod) {
	switch steps := splitPath(path); {
	case steps[0] == "metadata" && len(steps) > 1 && (steps[1] == "labels" || steps[1] == "annotations") && inert(steps):
		d.Labels = true
	case resizable(steps):
		d.Resources = true
	case len(steps) > 1 && steps[0] == "spec" && (steps[1] == "activeDeadlineSeconds" || steps[1] == "tolerations"):
		d.Lifetime = true
	case len(steps) == 4 && (steps[1] == "containers" || steps[1] == "initContainers") && (steps[3] == "image" || steps[3] == "imagePullPolicy"):
		// How an image is pulled is of no interest to one that is there.
		if steps[3] == "image" {
			d.Images = append(d.Images, containerAt(p, steps[1], steps[2]))
		}
		d.Labels = true
	default:
		d.Fixed = append(d.Fixed, path)
	}
}

// inert says whether podrun makes nothing of a label or an annotation.
func inert(steps []string) bool {
	if len(steps) < 3 {
		return true
	}
	domain, _, _ := strings.Cut(steps[2], "/")
	return domain != "podrun.dev" && domain != "apps.kruise.io"
}

// resizable says whether a path is that of CPU or memory of a container or the pod.
func resizable(steps []string) bool {
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
