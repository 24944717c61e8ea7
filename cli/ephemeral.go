package cli

import (
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
)

// joining is an ephemeral container that a manifest adds to a pod that runs.
type joining struct {
	container *corev1.EphemeralContainer
	alone     *upPod // a pod that has no other container: never started
}

// join takes up the ephemeral containers that a manifest adds to a pod that runs: their images
// are wanted, too.
func (l *launch) join(p *upPod) error {
	for _, i := range p.change.Ephemeral {
		c := p.object.Pod.Spec.EphemeralContainers[i].DeepCopy()
		object, err := manifest.LoadEphemeral(p.change.old, c)
		if err != nil {
			return err
		}
		j := joining{c, &upPod{object: object, place: p.place}}
		p.joining = append(p.joining, j)
		l.samples = append(l.samples, j.alone)
	}
	return nil
}

// grow adds them to the pods' plans, once all are built without an error.
func (l *launch) grow(failed error) error {
	if failed != nil {
		return nil
	}
	var errs []error
	for _, p := range l.pods {
		errs = append(errs, p.grow())
	}
	return errors.Join(errs...)
}

func (p *upPod) grow() error {
	for _, j := range p.joining {
		if j.alone.plan == nil { // a rehearsal without its image
			continue
		}
		if build.NeedsOwnUserNS(p.plan, j.alone.plan) && os.Geteuid() != 0 {
			return report.New(report.Failure, "give a container of the manifest such a capability before the pod is made: its pod has a user namespace of its own then",
				"cannot add container %s to pod %s: it shares its user namespace with other pods, which the container could reach", j.container.Name, p.place.Name)
		}
		_, p.plan = build.AddEphemeralContainer(p.object.Pod, p.plan, j.container, j.alone.plan)
	}
	return nil
}

// customize merges a file of the user's into the container.
func (d *debugging) customize(file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return report.New(report.Usage, "", "read the custom container spec: %w", err)
	}
	if err := manifest.ApplyCustomProfile(d.container, file, text); err != nil {
		return d.wrong(err)
	}
	return nil
}

// refuseEphemeral refuses a new pod that has ephemeral containers, as the API server does.
func refuseEphemeral(o *manifest.Object) error {
	if len(o.Pod.Spec.EphemeralContainers) == 0 {
		return nil
	}
	return report.New(report.Usage, "start the pod without them; podrun apply adds them to it while it runs", "pod %s: %w", o.Pod.Name,
		&manifest.Errors{List: []*manifest.Error{{File: o.File, Document: o.Document, Field: "spec.ephemeralContainers", Message: "Forbidden: cannot be set on create"}}})
}
