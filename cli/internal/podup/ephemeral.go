package podup

import (
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
)

// ephemeralTarget is an ephemeral container that a manifest adds to a running pod.
type ephemeralTarget struct {
	container *corev1.EphemeralContainer
	alone     *Target // a pod with only this container, to build its Plan; never started
}

// addEphemeral adds a manifest's new ephemeral containers to the run, so that their images are pulled
// too.
func (r *Run) addEphemeral(p *Target) error {
	for _, i := range p.change.Ephemeral {
		c := p.Object.Pod.Spec.EphemeralContainers[i].DeepCopy()
		object, err := manifest.LoadEphemeral(p.change.old, c)
		if err != nil {
			return err
		}
		j := ephemeralTarget{c, &Target{Object: object, Pod: p.Pod}}
		p.ephemeral = append(p.ephemeral, j)
		r.Samples = append(r.Samples, j.alone)
	}
	return nil
}

// buildEphemeral adds the ephemeral containers to the pods' Plans, once all of them are built without an
// error.
func (r *Run) buildEphemeral(failed error) error {
	if failed != nil {
		return nil
	}
	var errs []error
	for _, p := range r.Targets {
		errs = append(errs, p.buildEphemeral())
	}
	return errors.Join(errs...)
}

func (t *Target) buildEphemeral() error {
	for _, j := range t.ephemeral {
		if j.alone.Plan == nil { // a dry run without the image
			continue
		}
		if build.NeedsOwnUserNS(t.Plan, j.alone.Plan) && os.Geteuid() != 0 {
			return report.New(report.Failure, "add such a capability to a container of the manifest before the pod is created: the pod then has a user namespace of its own",
				"cannot add container %s to pod %s: it shares its user namespace with other pods, which the container could reach", j.container.Name, t.Pod.Name)
		}
		_, t.Plan = build.AddEphemeralContainer(t.Object.Pod, t.Plan, j.container, j.alone.Plan)
	}
	return nil
}

// RefuseEphemeral refuses a new pod that has ephemeral containers, as the API server does.
func RefuseEphemeral(o *manifest.Object) error {
	if len(o.Pod.Spec.EphemeralContainers) == 0 {
		return nil
	}
	return report.New(report.Usage, "start the pod without them; podrun apply adds them to it while it runs", "pod %s: %w", o.Pod.Name,
		&manifest.Errors{List: []*manifest.Error{{File: o.File, Document: o.Document, Field: "spec.ephemeralContainers", Message: "Forbidden: cannot be set on create"}}})
}
