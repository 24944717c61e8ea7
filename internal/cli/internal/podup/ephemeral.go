package podup

import (
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Ephemeral is an ephemeral container that is added to a running pod.
type Ephemeral struct {
	container *corev1.EphemeralContainer
	Alone     *Target // a pod with only this container, to build its Plan; never started
}

// errSharedUserNS is the error for an ephemeral container whose capabilities require a user namespace of the
// pod's own.
var errSharedUserNS = errors.New("it shares its user namespace with other pods, which the container could reach")

// LoadEphemeral validates an ephemeral container for a running pod with the manifest old, sets its defaults, and
// adds it to the run, so that its image is pulled too.
func (r *Run) LoadEphemeral(p store.Pod, old *corev1.Pod, c *corev1.EphemeralContainer) (Ephemeral, error) {
	object, err := manifest.LoadEphemeral(old, c)
	if err != nil {
		return Ephemeral{}, err
	}
	c.EphemeralContainerCommon = corev1.EphemeralContainerCommon(object.Pod.Spec.Containers[0])
	e := Ephemeral{c, &Target{Object: object, Pod: p}}
	r.Samples = append(r.Samples, e.Alone)
	return e, nil
}

// AddTo returns a Pod and its Plan with the container, whose own Plan has been built.
func (e Ephemeral) AddTo(p *corev1.Pod, plan *pod.Plan) (*corev1.Pod, *pod.Plan, error) {
	if build.NeedsOwnUserNS(plan, e.Alone.Plan) && os.Geteuid() != 0 {
		return nil, nil, errSharedUserNS
	}
	next, grown := build.AddEphemeralContainer(p, plan, e.container, e.Alone.Plan)
	return next, grown, nil
}

// addEphemeral adds a manifest's new ephemeral containers to the run.
func (r *Run) addEphemeral(p *Target) error {
	for _, i := range p.Change.Ephemeral {
		e, err := r.LoadEphemeral(p.Pod, p.Change.Old, p.Object.Pod.Spec.EphemeralContainers[i].DeepCopy())
		if err != nil {
			return err
		}
		p.ephemeral = append(p.ephemeral, e)
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
	for _, e := range t.ephemeral {
		if e.Alone.Plan == nil { // a dry run without the image
			continue
		}
		_, grown, err := e.AddTo(t.Object.Pod, t.Plan)
		if err != nil {
			return report.New(report.Failure, "add such a capability to a container of the manifest before the pod is created: the pod then has a user namespace of its own",
				"cannot add container %s to pod %s: %w", e.container.Name, t.Pod.Name, err)
		}
		t.Plan = grown
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
