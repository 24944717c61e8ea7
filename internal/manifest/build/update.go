package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// Update makes the next Plan of a running pod for its new manifest o. old is the manifest that plan was made
// from. d is the difference of o from old; d.Immutable must be empty. images has the images of the
// containers in d.Images. A container that must be restarted gets the next revision.
func Update(plan *pod.Plan, old *corev1.Pod, o *decode.Object, d *Difference, images map[string]pod.Image, opt Options) (*pod.Plan, error) {
	known := map[string]pod.Image{}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for _, c := range list {
			// The old plan lacks the image's other fields. They are not needed: only containers
			// in d.Images take them from the new one.
			known[c.Name] = pod.Image{ID: c.ImageID, Layers: c.Layers, Entrypoint: c.Args, User: c.User}
		}
	}
	for _, v := range plan.Volumes {
		known[podutil.VolumeImageKey(v.Name)] = pod.Image{Layers: v.Layers}
	}
	for _, name := range d.Images {
		known[name] = images[name]
	}
	opt.UID = plan.UID
	built, err := Plan(o, known, opt)
	if err != nil {
		return nil, err
	}
	next := *plan
	next.Resources, next.Labels, next.ActiveDeadlineSeconds = built.Resources, built.Labels, built.ActiveDeadlineSeconds
	next.Volumes = slices.Clone(plan.Volumes)
	for i := range next.Volumes { // labels, annotations and resources may be files
		if next.Volumes[i].Kind == pod.Files {
			next.Volumes[i].Sources = built.Volumes[i].Sources
		}
	}
	next.InitContainers = updatedContainers(plan.InitContainers, built.InitContainers, old.Spec.InitContainers, o.Pod.Spec.InitContainers, d)
	next.Containers = updatedContainers(plan.Containers, built.Containers, old.Spec.Containers, o.Pod.Spec.Containers, d)
	return &next, nil
}

func updatedContainers(plan, built []pod.Container, old, new []corev1.Container, d *Difference) []pod.Container {
	var list []pod.Container
	for i, c := range plan {
		cpu, memory := resources.Changed(&old[i], &new[i])
		restart := cpu && restartsFor(&new[i], corev1.ResourceCPU) || memory && restartsFor(&new[i], corev1.ResourceMemory)
		if slices.Contains(d.Images, c.Name) {
			c, restart = built[i], true
		}
		c.Devices = plan[i].Devices // those requested by number stay
		c.Resources, c.OOMScoreAdj, c.Revision = built[i].Resources, built[i].OOMScoreAdj, plan[i].Revision
		c.Vars = built[i].Vars // they may contain labels and limits, new from the next start on
		if restart {
			c.Revision, c.RestartRequested, c.RestartGraceSeconds = c.Revision+1, false, nil
		}
		list = append(list, c)
	}
	return list
}

// restartsFor reports whether a container is restarted when a resource is resized.
func restartsFor(c *corev1.Container, name corev1.ResourceName) bool {
	return slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer})
}

// NextGeneration returns the generation of a changed Pod: the manifest's, if that is a later one; else the
// next one if more than labels and annotations changed, as with an API server.
func NextGeneration(old, next *corev1.Pod, d *Difference) int64 {
	generation := old.Generation
	if d.Resources || d.MutableSpec || len(d.Images)+len(d.Ephemeral) > 0 {
		generation++
	}
	return max(generation, next.Generation)
}
