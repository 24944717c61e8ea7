package manifest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

type (
	// Object is one object of a manifest's file: decoded, with defaults and validated. Its field Stored is
	// the pod.Object that a store keeps of it.
	Object = decode.Object
	// Error is one mistake in a manifest.
	Error = decode.Error
	// Errors is the list of all mistakes of a file, in the order of the file.
	Errors = decode.Errors
	// BuildOptions is the input of Build beside the manifest and the images.
	BuildOptions = build.Options
	// Difference is the difference between a manifest and the manifest that a pod was made from.
	Difference = build.Difference
	// ImageUse is the use of an image by a container or a volume.
	ImageUse = podutil.ImageUse
)

// Decode reads the objects of a YAML or JSON file: documents separated by "---", of which empty ones are
// skipped, and Lists, which are split. It is as strict as an API server with strict field validation: an
// unknown field, a duplicate key, a name in the wrong case or a value of the wrong type is a mistake. The
// error is an *Errors with every mistake of every document.
//
// The text is untrusted: its length bounds time and memory, whatever it contains.
func Decode(file string, data []byte) ([]Object, error) {
	objects, errs := decode.Parse(file, data)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return objects, nil
}

// Images lists the images of a loaded Pod: of the volumes, the init containers and the app containers, in
// this order and each in the order of the manifest.
func Images(p *corev1.Pod) []ImageUse { return podutil.Images(p) }

// Build makes the Plan of a Pod that Load returned. images has all of the Pod's images by ImageUse.Key.
// Build changes neither. The error is an *Errors that names each container that cannot be run.
func Build(o *Object, images map[string]pod.Image, opt BuildOptions) (*pod.Plan, error) {
	return build.Plan(o, images, opt)
}

// Compare returns the difference of two Pods with their defaults, without the fields that FillSystemFields
// sets.
func Compare(old, new *corev1.Pod) (*Difference, error) { return build.Compare(old, new) }

// Update makes the next Plan of a running pod for its new manifest o. old is the manifest that plan was made
// from. d is the difference of o from old; d.Immutable must be empty. images has the images of the
// containers in d.Images. A container that must be restarted gets the next revision.
func Update(plan *pod.Plan, old *corev1.Pod, o *Object, d *Difference, images map[string]pod.Image, opt BuildOptions) (*pod.Plan, error) {
	return build.Update(plan, old, o, d, images, opt)
}

// Render returns the Pod with its PodStatus. A nil status stands for a pod that was only created.
func Render(p *corev1.Pod, st *pod.Status) *corev1.Pod { return status.Render(p, st) }
