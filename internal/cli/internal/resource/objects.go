package resource

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// FindObject returns an object that the user has named: the user's, else the cluster's.
func FindObject(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*pod.Object, error) {
	if kind.ClusterScoped() {
		namespace = ""
	}
	o, err := dirs.Object(kind, namespace, name)
	if errors.Is(err, fs.ErrNotExist) {
		o, err = dirs.OfCluster().Object(kind, namespace, name)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrBadName) {
		hint := fmt.Sprintf("podrun get %s lists the objects of a namespace", kindnames.Of(kind))
		if kind.ClusterScoped() {
			hint = fmt.Sprintf("podrun get %s lists all", kindnames.Of(kind))
		}
		if namespace == "" || namespace == podclient.DefaultNamespace {
			return nil, report.New(report.Failure, hint, "%s %q %w", kindnames.Of(kind), name, cmdutil.ErrNotFound)
		}
		return nil, report.New(report.Failure, hint, "%s %q %w in namespace %q", kindnames.Of(kind), name, cmdutil.ErrNotFound, namespace)
	}
	return o, err
}

// ListObjects returns the user's objects of a kind in a namespace, or in all namespaces for "". It adds the objects
// of the cluster whose names no object of the user has.
func ListObjects(dirs store.Dirs, kind pod.ObjectKind, namespace string) ([]*pod.Object, error) {
	list, err := dirs.Objects(kind, namespace)
	others, oerr := dirs.OfCluster().Objects(kind, namespace)
	for _, o := range others {
		if !slices.ContainsFunc(list, func(u *pod.Object) bool { return u.Namespace == o.Namespace && u.Name == o.Name }) {
			list = append(list, o)
		}
	}
	sortObjects(list)
	return list, errors.Join(err, oerr)
}

// sortObjects sorts objects by namespace and name.
func sortObjects(list []*pod.Object) {
	slices.SortStableFunc(list, func(a, b *pod.Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// ListNamespaces returns the namespaces that are stored or in use, and the default one, sorted by name. A
// namespace that is only in use is as old as the oldest object in it.
func ListNamespaces(dirs store.Dirs) ([]*pod.Object, error) {
	kept, err := dirs.Objects(pod.KindNamespace, "")
	used, uerr := NamespacesInUse(dirs)
	for _, o := range kept {
		delete(used, o.Name)
	}
	kept = slices.AppendSeq(kept, maps.Values(used))
	slices.SortFunc(kept, func(a, b *pod.Object) int { return strings.Compare(a.Name, b.Name) })
	return kept, errors.Join(err, uerr)
}

// NamespacesInUse returns the namespaces that are not empty, and the default one, by name.
func NamespacesInUse(dirs store.Dirs) (map[string]*pod.Object, error) {
	var errs []error
	used := map[string]*pod.Object{podclient.DefaultNamespace: {Kind: pod.KindNamespace, Name: podclient.DefaultNamespace}}
	use := func(name string, created time.Time) {
		o := used[name]
		if o == nil {
			o = &pod.Object{Kind: pod.KindNamespace, Name: name}
			used[name] = o
		}
		if o.CreatedAt.IsZero() || created.Before(o.CreatedAt) {
			o.CreatedAt = created
		}
	}
	for _, k := range kindnames.All() {
		if k.Kind.ClusterScoped() {
			continue
		}
		list, err := ListObjects(dirs, k.Kind, "")
		errs = append(errs, err)
		for _, o := range list {
			use(o.Namespace, o.CreatedAt)
		}
	}
	pods, err := ListPods(dirs, "", true)
	errs = append(errs, err)
	for _, p := range pods {
		use(p.Namespace, podview.MetadataOf(p).CreationTimestamp)
	}
	return used, errors.Join(errs...)
}

// FindNamespace returns a namespace that the user has named.
func FindNamespace(dirs store.Dirs, name string) (*pod.Object, error) {
	all, err := ListNamespaces(dirs)
	for _, o := range all {
		if o.Name == name {
			return o, nil
		}
	}
	if err == nil {
		_, err = FindObject(dirs, pod.KindNamespace, "", name)
	}
	return nil, err
}

// SetVolumeStates sets the derived fields of PersistentVolumes and claims. Other objects stay as they are.
func SetVolumeStates(dirs store.Dirs, list []*pod.Object) error {
	var volumes []*pod.Object
	var errs []error
	if slices.ContainsFunc(list, func(o *pod.Object) bool { return o.Claim != nil }) {
		for _, d := range []store.Dirs{dirs, dirs.OfCluster()} { // the UIDs of claims differ
			some, err := d.Objects(pod.KindVolume, "")
			volumes, errs = append(volumes, some...), append(errs, err)
		}
	}
	for _, o := range list {
		dirs := dirs
		if o.IsFromCluster() {
			dirs = dirs.OfCluster()
		}
		switch c, v := o.Claim, o.PersistentVolume; {
		case c != nil:
			c.Volume = pod.BoundVolume(o, volumes)
			c.Bound = c.Volume != nil || c.Provisions() && (c.Class == nil || dirs.HasClaimDir(o))
		case v == nil:
		case v.Claim == nil || v.Claim.UID == "":
			v.Phase = pod.VolumeAvailable
		default:
			v.Phase = pod.VolumeBound
			claim, err := dirs.Object(pod.KindClaim, v.Claim.Namespace, v.Claim.Name)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !v.IsBoundTo(claim) { // a damaged claim keeps its volume
				v.Phase = pod.VolumeReleased
			}
		}
	}
	return errors.Join(errs...)
}
