package podup

import (
	"errors"
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// refuseVolumes refuses pods that need a PersistentVolume of a kind that podrun does not mount.
func (r *Run) refuseVolumes() error {
	var volumeOf func(namespace, claim string) *pod.Object
	var errs []error
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		one := p.Object.Pod
		for i := range one.Spec.Volumes {
			c := one.Spec.Volumes[i].PersistentVolumeClaim
			if c == nil || r.Dirs.HasClaimDir(&pod.Object{Namespace: one.Namespace, Name: c.ClaimName}) {
				continue
			}
			if volumeOf == nil {
				var err error
				if volumeOf, err = objects.PreviewBindings(r.Dirs, r.Stored); err != nil {
					return err
				}
			}
			if v := volumeOf(one.Namespace, c.ClaimName); v != nil && !v.PersistentVolume.Mountable() {
				errs = append(errs, report.New(report.Usage, "mount the storage on this machine, and name the directory in a PersistentVolume with hostPath",
					"pod %s cannot use the claim %s: its persistentvolume %s is of kind %s, which podrun does not mount", one.Name, c.ClaimName, v.Name, v.PersistentVolume.Source))
			}
		}
	}
	return errors.Join(errs...)
}
