// Package upplan decides what a run of up does with each pod of its manifests: it compares the manifest with what there
// is of the pod. It changes nothing; package podup observes the pods and carries the steps out.
package upplan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// Action is what a run does with a pod.
type Action int

const (
	Create  Action = iota // the pod does not run: it is created or resumed
	Keep                  // it stays as it is: it runs and matches its manifest, or has ended for good
	Change                // it runs, and is changed to match its manifest
	Replace               // it is created after the running pod of its name was stopped and removed
)

// Step is what a run does with one pod.
type Step struct {
	Action          Action
	Resumed         *Resumption // of Create: nil unless a lost pod is resumed
	Change          *Difference // of Change
	AwaitsImages    bool        // some images are missing: they are pulled while the pod is pending
	ReplacesPending bool        // the existing pod waits for its images
}

// Resumption is a pod without processes that will be resumed: it keeps its identity, its volumes on disk,
// its logs and its restart counts.
type Resumption struct {
	UID     string
	Created time.Time
}

// Difference is the difference between a manifest and the running pod of its name.
type Difference struct {
	*manifest.Difference
	Old *corev1.Pod // the manifest that the running pod was made from
}

// Observed is what there is of a pod when the run begins.
type Observed struct {
	Running  bool        // it has processes: it runs, or waits for its images
	Manifest *corev1.Pod // the manifest that it was made from; nil if there is none, or no readable one
	Plan     *pod.Plan   // nil if there is none
	Status   *pod.Status // nil if there is none
	Removing bool        // a command is removing it
	HasRun   bool        // one of its containers has run
	Rebooted bool        // the machine was restarted since its last status
}

// Rules are how a run treats the pods that exist.
type Rules struct {
	Replace  bool // --replace: a running pod that cannot be changed to its manifest is replaced
	Recreate bool // the pod is created again even if an equal one runs
	Leave    bool // a running pod stays as it is
	Unit     bool // a systemd unit runs the pods
	Owned    bool // this unit has made the running pod, and may replace it
}

// ErrBusy is the error of a pod that another command is creating or removing.
var ErrBusy = errors.New("another podrun command is creating or removing it")

// Decide returns the step of a pod. The error is why a running pod cannot become what its manifest describes.
func Decide(want *manifest.Object, o *Observed, r Rules) (Step, error) {
	switch {
	case r.Recreate && o.Running:
		return Step{Action: Replace}, nil
	case r.Recreate:
		return Step{}, nil
	case o.Running:
		return decideRunning(want, o, r)
	}
	return decideStopped(want, o, r)
}

// decideRunning returns the step of a pod that runs. It stays if the manifest is the same, or differs only in fields
// that can be changed while it runs. Otherwise --replace is needed, which removes it.
func decideRunning(want *manifest.Object, o *Observed, r Rules) (Step, error) {
	if o.Manifest == nil || o.Plan == nil {
		return Step{}, ErrBusy
	}
	if r.Leave {
		return Step{Action: Keep, AwaitsImages: o.Plan.ImagesPending, ReplacesPending: o.Plan.ImagesPending}, nil
	}
	d, err := manifest.Compare(o.Manifest, want.Pod)
	if err != nil {
		return Step{}, err
	}
	refused := refuseChange(want, o.Manifest, d)
	switch {
	case o.Plan.ImagesPending && d.Empty() && !r.Unit: // nothing has been started yet
		return Step{Action: Keep, AwaitsImages: true, ReplacesPending: true}, nil
	case o.Plan.ImagesPending: // a unit's process pulls the images itself
		return Step{Action: Replace, ReplacesPending: true}, nil
	case refused != nil && (r.Replace || r.Owned && errors.Is(refused, cmdutil.ErrImmutable)):
		return Step{Action: Replace}, nil
	case refused != nil:
		return Step{}, refused
	case d.Empty():
		return Step{Action: Keep}, nil
	}
	return Step{Action: Change, Change: &Difference{d, o.Manifest}}, nil
}

// maxFields is the largest number of fields that an error names.
const maxFields = 10

// refuseChange returns why a running pod cannot be changed to its manifest, or nil.
func refuseChange(want *manifest.Object, old *corev1.Pod, d *manifest.Difference) error {
	name := want.Pod.Name
	if len(d.Immutable) == 0 {
		if err := manifest.ValidatePodUpdate(want, old); err != nil {
			return report.New(report.Failure, ReplaceHint(name), "%w", err)
		}
		return nil
	}
	fields, more := d.Immutable, ""
	if n := len(fields) - maxFields; n > 0 {
		fields, more = fields[:maxFields], fmt.Sprintf(" and %d more", n)
	}
	return report.New(report.Failure, ReplaceHint(name), "pod %s is already running and %w: %s%s",
		name, cmdutil.ErrImmutable, strings.Join(fields, ", "), more)
}

// ReplaceHint returns the hint of an error about a running pod.
func ReplaceHint(name string) string {
	return fmt.Sprintf("podrun up --replace stops it and starts the new one; podrun down %s removes it", name)
}

// decideStopped returns the step of a pod that does not run. A pod that was lost, by a reboot
// or otherwise, is resumed if its manifest is the same, as the kubelet does. A pod that has ended is
// replaced by a new pod; but in a unit it is kept as it is if the machine was restarted since, without
// podutil.AnnotationRunAtBoot. A lost pod with the
// restart policy Never in which a container has run is not resumed either, because a container may not run twice in one
// pod: like a pod that has ended, it is replaced.
func decideStopped(want *manifest.Object, o *Observed, r Rules) (Step, error) {
	if o.Manifest == nil || o.Plan == nil || o.Plan.UID == "" || o.Removing || o.Status != nil && o.Status.Deleting {
		return Step{}, nil // there is none, or what is left of it is replaced
	}
	next := want.Pod.DeepCopy()
	next.Spec.ImagePullSecrets = o.Manifest.Spec.ImagePullSecrets // for pulls only; its ServiceAccount may have others now
	d, err := manifest.Compare(o.Manifest, next)
	if err != nil || !d.Empty() {
		return Step{}, err
	}
	ended := o.Status != nil && o.Status.Phase.Terminal() && o.Status.Reason != pod.ReasonTerminated
	mustNotRerun := o.Plan.RestartPolicy == pod.RestartNever && o.HasRun
	switch {
	case !ended && !mustNotRerun:
		return Step{Resumed: &Resumption{o.Plan.UID, o.Manifest.CreationTimestamp.Time}}, nil
	case r.Unit && o.Rebooted && want.Pod.Annotations[podutil.AnnotationRunAtBoot] != "true":
		return Step{Action: Keep}, nil
	}
	return Step{}, nil
}
