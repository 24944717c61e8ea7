package podup

import (
	"errors"
	"sync"

	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// refuseVolumes refuses pods that need a PersistentVolume of a kind that podrun does not mount.
func (r *Run) refuseVolumes() []error {
	volumeOf := r.volumeOfClaim()
	return r.eachTarget(func(p *Target) error { return r.refuseVolumesOf(p, volumeOf) })
}

// refuseSampleVolumes is refuseVolumes for the pods of workloads.
func (r *Run) refuseSampleVolumes() error {
	volumeOf := r.volumeOfClaim()
	var errs []error
	for _, p := range r.Samples {
		errs = append(errs, r.refuseVolumesOf(p, volumeOf))
	}
	return errors.Join(errs...)
}

// boundVolumes returns the PersistentVolume of a claim, or nil.
type boundVolumes func(namespace, claim string) *pod.Object

// volumeOfClaim returns a function that computes the PersistentVolumes of claims once it is needed.
func (r *Run) volumeOfClaim() func() (boundVolumes, error) {
	return sync.OnceValues(func() (boundVolumes, error) { return objects.PreviewBindings(r.Dirs, r.Stored) })
}

func (r *Run) refuseVolumesOf(p *Target, volumes func() (boundVolumes, error)) error {
	var errs []error
	spec := p.Object.Pod
	for i := range spec.Spec.Volumes {
		c := spec.Spec.Volumes[i].PersistentVolumeClaim
		if c == nil || r.Dirs.HasClaimDir(&pod.Object{Namespace: spec.Namespace, Name: c.ClaimName}) {
			continue
		}
		volumeOf, err := volumes()
		if err != nil {
			return err
		}
		if v := volumeOf(spec.Namespace, c.ClaimName); v != nil && !v.PersistentVolume.Mountable() {
			errs = append(errs, report.New(report.Usage, "mount the storage on this machine, and name the directory in a PersistentVolume with hostPath",
				"pod %s cannot use the claim %s: its persistentvolume %s is of kind %s, which podrun does not mount", spec.Name, c.ClaimName, v.Name, v.PersistentVolume.Source))
		}
	}
	return errors.Join(errs...)
}
