package objects

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// ClaimRef names a PersistentVolumeClaim.
type ClaimRef struct{ Namespace, Name string }

// Volume is a claim and its directory, of which one may be missing, or a claim and its PersistentVolume.
type Volume struct {
	Name        string   `json:"name"`
	Namespace   string   `json:"namespace"`
	Path        string   `json:"path,omitempty"` // of the directory or the PersistentVolume; "" if no pod has used it yet
	Claimed     bool     `json:"claimed"`        // a PersistentVolumeClaim exists
	AccessModes []string `json:"accessModes,omitempty"`
	Request     int64    `json:"requestBytes,omitempty"`
	UsedBy      []string `json:"usedBy,omitempty"` // names of pods
}

// ListVolumes returns all claims and directories.
func ListVolumes(dirs store.Dirs) ([]*Volume, error) {
	found, err := dirs.Volumes()
	if err != nil {
		return nil, err
	}
	objects, err := dirs.Objects(pod.KindClaim, "")
	if err != nil {
		return nil, err
	}
	byClaim := map[ClaimRef]*Volume{}
	var list []*Volume
	volumeOf := func(c ClaimRef) *Volume {
		if byClaim[c] == nil {
			byClaim[c] = &Volume{Namespace: c.Namespace, Name: c.Name}
			list = append(list, byClaim[c])
		}
		return byClaim[c]
	}
	for _, v := range found {
		volumeOf(ClaimRef{v.Namespace, v.Name}).Path = v.Dir
	}
	persistent, err := dirs.Objects(pod.KindVolume, "")
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		v := volumeOf(ClaimRef{o.Namespace, o.Name})
		v.Claimed, v.AccessModes, v.Request = true, o.Claim.AccessModes, o.Claim.Request
		if bound := pod.BoundVolume(o, persistent); bound != nil {
			v.Path = bound.PersistentVolume.Path
		}
	}
	for _, v := range list {
		users, err := dirs.ClaimUsers(v.Namespace, v.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range users {
			v.UsedBy = append(v.UsedBy, p.Name)
		}
	}
	slices.SortFunc(list, func(a, b *Volume) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list, nil
}

// RemoveFreeVolumes removes claims with their directories, except claims that pods use.
func RemoveFreeVolumes(env *cmdutil.Env, dirs store.Dirs, claims []ClaimRef) error {
	var free []ClaimRef
	for _, c := range claims {
		users, err := dirs.ClaimUsers(c.Namespace, c.Name)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			fmt.Fprintf(env.ErrOut, "podrun: persistentvolumeclaim/%s is kept: pod %s uses it\n", c.Name, users[0].Name)
			continue
		}
		free = append(free, c)
	}
	if len(free) == 0 {
		return nil
	}
	return RemoveVolumes(env, dirs, free)
}

// FindVolume returns the volume of a claim.
func FindVolume(all []*Volume, c ClaimRef) (*Volume, error) {
	for _, v := range all {
		if v.Namespace == c.Namespace && v.Name == c.Name {
			return v, nil
		}
	}
	return nil, report.New(report.Failure, "podrun volume ls lists the volumes", "volume %q not found in namespace %q", c.Name, c.Namespace)
}

// RemoveVolumes removes claims with their directories, and reports each.
func RemoveVolumes(env *cmdutil.Env, dirs store.Dirs, claims []ClaimRef) error {
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot remove volumes: %w", err)
	}
	defer lock.Close()
	all, err := ListVolumes(dirs)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range claims {
		shown := progress.New(env, "")
		shown.Wait("deleting persistentvolumeclaim/%s", c.Name) // its files may be many
		err := RemoveVolume(env, dirs, all, c)
		shown.End()
		if errs = append(errs, err); err == nil {
			fmt.Fprintf(env.Out, "persistentvolumeclaim/%s deleted\n", c.Name)
		}
	}
	return errors.Join(errs...)
}

// RemoveVolume removes a claim that no pod uses, and its directory. The caller holds the lock of the
// objects.
func RemoveVolume(env *cmdutil.Env, dirs store.Dirs, all []*Volume, c ClaimRef) error {
	v, err := FindVolume(all, c)
	switch {
	case err != nil:
		return err
	case len(v.UsedBy) > 0:
		return report.New(report.Failure, "podrun down "+v.UsedBy[0]+" removes the pod", "cannot remove volume %s: pod %s uses it", v.Name, v.UsedBy[0])
	}
	if err := removeClaimDir(env, dirs, c.Namespace, c.Name); err != nil {
		return err
	}
	if err := dirs.DeleteObject(pod.KindClaim, c.Namespace, c.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeClaimDir removes the directory of a claim, if it has one.
func removeClaimDir(env *cmdutil.Env, dirs store.Dirs, namespace, name string) error {
	dir, err := dirs.ClaimDir(namespace, name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	return launcher.RemoveVolume(dir)
}
