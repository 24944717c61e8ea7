package controller

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/workload"
)

// makeClaims creates the missing claims of a pod, before the pod is created. Existing claims stay as they
// are, no matter what has created them.
func (c *Controller) makeClaims(v *resource.WorkloadInfo, m workload.Make) error {
	if v.Object.Kind != pod.KindStatefulSet {
		return nil
	}
	claims, err := workloads.NewClaims(v.Object, m.Index)
	if err != nil || len(claims) == 0 {
		return err
	}
	lock, err := c.dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot create the claims of %s: %w", v.Name(), err)
	}
	defer lock.Close()
	for _, o := range claims {
		_, err := c.dirs.Object(pod.KindClaim, o.Namespace, o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			o.UID, o.CreatedAt, o.Revision = objects.NewUID(), time.Now().UTC(), 1
			err = c.dirs.PutObject(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeClaims removes the claims of a StatefulSet that its retention policy does not keep: of all its
// pods once the set is deleted, or of pods that it no longer has.
func (c *Controller) removeClaims(v *resource.WorkloadInfo, gone bool) error {
	if v.Object.Kind != pod.KindStatefulSet {
		return nil
	}
	claims, err := workloads.ClaimSetOf(v.Object)
	if err != nil || claims == nil || !claims.DeleteWithSet && gone || !claims.DeleteWhenScaled && !gone {
		return err
	}
	list, err := c.dirs.Objects(pod.KindClaim, v.Object.Namespace)
	if err != nil {
		return err
	}
	var idle []objects.ClaimRef
	for _, o := range list {
		ordinal, wanted, ok := claims.Ordinal(o.Name)
		has := slices.ContainsFunc(v.Pods, func(p workload.Pod) bool { return p.Index == ordinal })
		if ok && (gone || !wanted && !has) {
			idle = append(idle, objects.ClaimRef{Namespace: o.Namespace, Name: o.Name})
		}
	}
	if len(idle) == 0 {
		return nil
	}
	lock, err := c.dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot remove the claims of %s: %w", v.Name(), err)
	}
	defer lock.Close()
	all, err := objects.ListVolumes(c.dirs)
	if err != nil {
		return err
	}
	for _, claim := range idle {
		if err := objects.RemoveVolume(c.env, c.dirs, all, claim); err != nil {
			report.Print(c.env.ErrOut, err) // the set is removed nevertheless, and the claim stays
		}
	}
	return nil
}
