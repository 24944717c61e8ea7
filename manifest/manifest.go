package manifest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/manifest/build"
	"github.com/podrun/podrun/manifest/decode"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/manifest/status"
	"github.com/podrun/podrun/pod"
)

type (
	// Object is one object of a file.
	Object = decode.Object
	// Error is one mistake in a manifest.
	Error = decode.Error
	// Errors is every mistake of a file, in the order of the file.
	Errors = decode.Errors
	// BuildOptions is what Build needs to know beside the manifest and the images.
	BuildOptions = build.Options
	// Difference is what a manifest changes about a pod that was made from another.
	Difference = build.Difference
	// ImageUse is the need that a container has of an image, or a volume.
	ImageUse = podutil.ImageUse
)

// Decode reads the objects of a YAML or JSON file: documents separated by "---",
// of which empty ones are skipped, and Lists, which are taken apart. It is as
// strict as an API server that is told to be: an unknown field, a key given twice,
// a name in the wrong case or a value of the wrong type is a mistake. The error is
// an *Errors with every mistake of every document.
//
// The text is untrusted: time and memory are bounded by its length, whatever it is.
func Decode(file string, data []byte) ([]Object, error) {
	objects, errs := decode.Parse(file, data)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return objects, nil
}

// Images lists the images of a loaded Pod: volumes', then init containers' first, in the
// order of the manifest.
func Images(p *corev1.Pod) []ImageUse { return podutil.Images(p) }

// Build decides everything about a Pod that Load returned and whose images, by
// ImageUse.Key, are there. It changes neither. The error is an *Errors that
// names each container that cannot be run.
func Build(o *Object, images map[string]pod.Image, opt BuildOptions) (*pod.Plan, error) {
	return build.Plan(o, images, opt)
}

// Compare tells two Pods with their defaults apart, without what makes each pod
// itself: see Stamp.
func Compare(old, new *corev1.Pod) (*Difference, error) { return build.Compare(old, new) }

// Update makes the Plan of a pod that lives, for a manifest that differs from old,
// the one it was made from, in what d says and nothing Fixed. images has those of
// d.Images. A container that must be restarted gets the next revision.
func Update(plan *pod.Plan, old *corev1.Pod, o *Object, d *Difference, images map[string]pod.Image, opt BuildOptions) (*pod.Plan, error) {
	return build.Update(plan, old, o, d, images, opt)
}

// Render gives the Pod with its PodStatus. A nil status is that of a pod which was
// created and nothing more.
func Render(p *corev1.Pod, st *pod.Status) *corev1.Pod { return status.Render(p, st) }
