package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// makeClaims makes the claims of a pod that is to be made. Those that are there are taken
// as they are, whoever has made them.
func (c *controller) makeClaims(v *view, m workload.Make) error {
	if v.object.Kind != pod.KindStatefulSet {
		return nil
	}
	claims, err := workloads.NewClaims(v.object, m.Index)
	if err != nil || len(claims) == 0 {
		return err
	}
	lock, err := c.dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot make the claims of %s: %w", v.name(), err)
	}
	defer lock.Close()
	for _, o := range claims {
		_, err := c.dirs.Object(pod.KindClaim, o.Namespace, o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			o.UID, o.CreatedAt, o.Revision = newUID(), time.Now().UTC(), 1
			err = c.dirs.PutObject(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropClaims removes the claims of a StatefulSet that are not to stay: of all its pods
// once it is gone itself, or of those that it has no more.
func (c *controller) dropClaims(v *view, gone bool) error {
	if v.object.Kind != pod.KindStatefulSet {
		return nil
	}
	claims, err := workloads.ClaimSetOf(v.object)
	if err != nil || claims == nil || !claims.DeleteWithSet && gone || !claims.DeleteWhenScaled && !gone {
		return err
	}
	list, err := c.dirs.Objects(pod.KindClaim, v.object.Namespace)
	if err != nil {
		return err
	}
	var idle []claim
	for _, o := range list {
		ordinal, wanted, ok := claims.Ordinal(o.Name)
		has := slices.ContainsFunc(v.pods, func(p workload.Pod) bool { return p.Index == ordinal })
		if ok && (gone || !wanted && !has) {
			idle = append(idle, claim{o.Namespace, o.Name})
		}
	}
	if len(idle) == 0 {
		return nil
	}
	lock, err := c.dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot remove the claims of %s: %w", v.name(), err)
	}
	defer lock.Close()
	all, err := volumes(c.dirs)
	if err != nil {
		return err
	}
	for _, one := range idle {
		if err := c.front.removeVolume(c.dirs, all, one); err != nil {
			report.Print(c.front.err, err) // the set goes nevertheless, and the claim stays
		}
	}
	return nil
}
