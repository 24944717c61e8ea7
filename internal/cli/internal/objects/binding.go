package objects

import (
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// bindClaims binds claims to PersistentVolumes after objects were stored, of which one is a claim or a
// volume. It returns the claims that it has bound: their pods may wait for them. It warns of stored claims and
// volumes that are of no use yet. The caller holds the lock of the objects.
func bindClaims(env *cmdutil.Env, dirs store.Dirs, stored []Change) (bound []*pod.Object, err error) {
	if !slices.ContainsFunc(stored, func(k Change) bool { return k.Object.Claim != nil || k.Object.PersistentVolume != nil }) {
		return nil, nil
	}
	claims, err := dirs.Objects(pod.KindClaim, "")
	if err != nil {
		return nil, fmt.Errorf("cannot bind claims: %w", err)
	}
	volumes, changed, err := dirs.BindClaims(claims)
	if err != nil {
		return nil, fmt.Errorf("cannot bind claims: %w", err)
	}
	for _, c := range claims {
		if slices.Contains(changed, pod.BoundVolume(c, volumes)) {
			bound = append(bound, c)
		}
	}
	for _, k := range stored {
		var text string
		switch {
		case k.Object.Claim != nil:
			text = claimWarning(dirs, k.Object, volumes)
		case k.Object.PersistentVolume != nil:
			text = volumeWarning(k.Object.PersistentVolume)
		}
		if text != "" {
			fmt.Fprintf(env.ErrOut, "podrun: warning: %s\n", report.Escape(kindnames.Display(k.Object)+": "+text))
		}
	}
	return bound, nil
}

// claimWarning returns why a claim is not bound to a volume that the user may expect, or "".
func claimWarning(dirs store.Dirs, o *pod.Object, volumes []*pod.Object) string {
	c := o.Claim
	if pod.BoundVolume(o, volumes) != nil || dirs.HasClaimDir(o) {
		return ""
	}
	if !c.Provisions() {
		return "is Pending: " + dirs.WhyPending(o, volumes)
	}
	for _, v := range volumes {
		if c.Class != nil && *c.Class == v.PersistentVolume.Class {
			return fmt.Sprintf("no PersistentVolume of its class %s is free and matches: a pod that uses it gets a directory of podrun; a Released volume is free again when it is deleted, which keeps its files, and applied again", *c.Class)
		}
	}
	return ""
}

// volumeWarning returns why no claim is bound to a volume, or what podrun does not do with it, or "".
func volumeWarning(v *pod.PersistentVolume) string {
	switch {
	case v.OtherNode:
		return fmt.Sprintf("its nodeAffinity does not match this machine (kubernetes.io/hostname: %s): no claim is bound to it", resource.NodeName())
	case v.ReclaimPolicy == "Delete":
		return "persistentVolumeReclaimPolicy Delete: podrun keeps the files when the claim is deleted"
	}
	return ""
}

// withVolumeName returns a claim with the name of its volume, as the API server stores it: it can no longer
// change. A directory counts as a volume without a name. Other objects are returned as they are.
func withVolumeName(dirs store.Dirs, o *pod.Object) (*pod.Object, error) {
	if o.Claim == nil {
		return o, nil
	}
	volumes, err := dirs.Objects(pod.KindVolume, "")
	if err != nil {
		return nil, err
	}
	named, claim := *o, *o.Claim
	named.Claim = &claim
	if v := pod.BoundVolume(o, volumes); v != nil {
		claim.VolumeName = v.Name
	} else if dirs.HasClaimDir(o) {
		claim.VolumeName = "<directory>"
	}
	return &named, nil
}

// PreviewBindings returns a function that returns the PersistentVolume to which a claim is bound, or would be
// once the objects of manifests are stored; nil if there is none.
func PreviewBindings(dirs store.Dirs, next []manifest.Object) (volumeOf func(namespace, claim string) *pod.Object, err error) {
	claims, err := overlay(dirs, pod.KindClaim, next)
	if err != nil {
		return nil, err
	}
	volumes, err := overlay(dirs, pod.KindVolume, next)
	if err != nil {
		return nil, err
	}
	pod.BindClaims(claims, volumes, dirs.HasClaimDir)
	return func(namespace, claim string) *pod.Object {
		i := slices.IndexFunc(claims, func(o *pod.Object) bool { return o.Namespace == namespace && o.Name == claim })
		if i < 0 {
			return nil
		}
		return pod.BoundVolume(claims[i], volumes)
	}, nil
}

// overlay returns copies of the stored objects of a kind, as they are once the objects of manifests are stored.
func overlay(dirs store.Dirs, kind pod.ObjectKind, next []manifest.Object) ([]*pod.Object, error) {
	list, err := dirs.Objects(kind, "")
	for i := range next {
		if next[i].Stored.Kind != kind {
			continue
		}
		o := *next[i].Stored
		if o.PersistentVolume != nil {
			copied := *o.PersistentVolume
			copied.OtherNode = !resource.IsOnThisNode(&next[i])
			o.PersistentVolume = &copied
		}
		if j := slices.IndexFunc(list, func(old *pod.Object) bool { return old.Namespace == o.Namespace && old.Name == o.Name }); j >= 0 {
			conversion.PreserveFrom(list[j], &o)
			list[j] = &o
			continue
		}
		o.UID = NewUID()
		list = append(list, &o)
	}
	return list, err
}
