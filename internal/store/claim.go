package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// A claim has a directory that remains when its pods go, or is bound to a PersistentVolume, whose
// object records that. A claim that has a directory is never bound: both are made under the lock of
// the objects.

// errClaimInUse means that another pod uses a claim exclusively (kubelet's scheduler:
// VolumeRestrictions).
var errClaimInUse = errors.New("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")

// volumesRoot returns the directory of the claims' directories. Claims of a cluster have none.
func (d Dirs) volumesRoot() string { return filepath.Join(d.objectsIn(d.Data), "volumes") }

// ClaimDir returns the directory of a claim. Its files belong to ids of the pods' user namespace.
func (d Dirs) ClaimDir(namespace, name string) (string, error) {
	if !isSafeName(namespace) || !isSafeName(name) {
		return "", fmt.Errorf("%q in namespace %q is not a valid name of a claim", name, namespace)
	}
	return filepath.Join(d.volumesRoot(), namespace, name), nil
}

// ClaimDir returns the directory of a claim of the pod's namespace. The name must be validated.
func (p Pod) ClaimDir(name string) string {
	dir, err := p.dirs.ClaimDir(p.Namespace, name)
	if err != nil {
		panic("store: " + err.Error())
	}
	return dir
}

// HasClaimDir reports whether a claim has a directory.
func (d Dirs) HasClaimDir(claim *pod.Object) bool {
	dir, err := d.ClaimDir(claim.Namespace, claim.Name)
	if err == nil {
		_, err = os.Lstat(dir)
	}
	return err == nil
}

// ProvisionedDir returns the directory of a PersistentVolume that this host, as the node of a cluster, has made for a
// claim. Its files belong to ids of the pods' user namespace.
func (d Dirs) ProvisionedDir(volume string) (string, error) {
	if !isSafeName(volume) {
		return "", fmt.Errorf("%q is not a valid name of a volume", volume)
	}
	return filepath.Join(d.provisionedRoot(), volume), nil
}

func (d Dirs) provisionedRoot() string {
	return filepath.Join(d.OfCluster().objectsIn(d.Data), "persistentvolumes")
}

// IsProvisioned reports whether a path is a ProvisionedDir.
func (p Pod) IsProvisioned(path string) bool { return filepath.Dir(path) == p.dirs.provisionedRoot() }

// MakeProvisioned makes a ProvisionedDir, durably, unless it is there: every user may write into it, as in a claim's
// directory.
func (d Dirs) MakeProvisioned(volume string) (dir string, err error) {
	if dir, err = d.ProvisionedDir(volume); err != nil {
		return "", err
	}
	if err = makeDirs(dir); err == nil {
		err = os.Chmod(dir, 0o777)
	}
	for at := filepath.Dir(dir); err == nil && at != filepath.Dir(d.Data); at = filepath.Dir(at) {
		err = SyncDir(at)
	}
	if err != nil {
		return "", fmt.Errorf("make the directory of volume %s: %w", volume, err)
	}
	return dir, nil
}

// enforcesPodSecurity reports whether a namespace enforces one of the Pod Security Standards, which forbid
// directories of the host.
func (d Dirs) enforcesPodSecurity(namespace string) bool {
	o, err := d.Object(pod.KindNamespace, "", namespace)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // a damaged label forbids
	}
	level := o.Labels["pod-security.kubernetes.io/enforce"]
	return level != "" && level != "privileged"
}

// WhyPending is pod.WhyPending for a stored claim.
func (d Dirs) WhyPending(claim *pod.Object, volumes []*pod.Object) string {
	if d.enforcesPodSecurity(claim.Namespace) {
		return fmt.Sprintf("namespace %q enforces a Pod Security Standard: its claims are bound to no PersistentVolume, which is a directory of the host", claim.Namespace)
	}
	return pod.WhyPending(claim, volumes)
}

// BindClaims binds the claims that have neither a directory nor a volume, by pod.BindClaims. It returns
// all PersistentVolumes, and the changed ones. Claims of a namespace that enforces a Pod Security Standard
// stay unbound. The caller holds the lock of the objects.
func (d Dirs) BindClaims(claims []*pod.Object) (all, changed []*pod.Object, err error) {
	if all, err = d.Objects(pod.KindVolume, ""); err != nil || len(all) == 0 {
		return nil, nil, err // a claim may be bound to a damaged volume
	}
	staysUnbound := func(claim *pod.Object) bool { return d.HasClaimDir(claim) || d.enforcesPodSecurity(claim.Namespace) }
	for _, v := range pod.BindClaims(claims, all, staysUnbound) {
		if err := d.PutObject(v); err != nil {
			return all, changed, err
		}
		changed = append(changed, v)
	}
	return all, changed, nil
}

// BindClaim is Dirs.BindClaims for a claim of the pod. It returns the claim, with its volume, if it
// has one. A claim of a cluster has the volume to which the API server has bound it, and no other.
func (p Pod) BindClaim(name string) (*pod.Object, error) {
	o, err := p.Object(pod.KindClaim, name)
	if err != nil {
		return nil, err
	}
	if o.Claim.Bound = p.dirs.HasClaimDir(o); o.Claim.Bound { // also if a PersistentVolume is damaged
		return o, nil
	}
	var all []*pod.Object
	if p.dirs.ofCluster {
		all, err = p.dirs.Objects(pod.KindVolume, "")
	} else {
		all, _, err = p.dirs.BindClaims([]*pod.Object{o})
	}
	if err != nil {
		return nil, err
	}
	o.Claim.Volume = pod.BoundVolume(o, all)
	o.Claim.Bound = o.Claim.Volume != nil
	if !o.Claim.Bound && (p.dirs.ofCluster || !o.Claim.Provisions()) {
		return nil, errors.New(p.dirs.WhyPending(o, all))
	}
	return o, nil
}

// FindBoundVolume returns the PersistentVolume that a claim of the pod is bound to, or nil.
func (p Pod) FindBoundVolume(claim string) (*pod.PersistentVolume, error) {
	o, err := p.Object(pod.KindClaim, claim)
	if err != nil {
		return nil, err
	}
	all, err := p.dirs.Objects(pod.KindVolume, "")
	if v := pod.BoundVolume(o, all); v != nil {
		return v.PersistentVolume, nil
	}
	return nil, err
}

// HasPersistentVolumes reports whether any PersistentVolume exists.
func (p Pod) HasPersistentVolumes() bool {
	list, err := p.dirs.Objects(pod.KindVolume, "")
	return len(list) > 0 || err != nil
}

// Volume is a claim that has a directory.
type Volume struct{ Namespace, Name, Dir string }

// Volumes returns the claims that have a directory, by namespace and name.
func (d Dirs) Volumes() ([]Volume, error) {
	root := d.volumesRoot()
	spaces, err := names(root)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	var list []Volume
	for _, space := range spaces {
		found, err := names(filepath.Join(root, space))
		if err != nil {
			return nil, fmt.Errorf("list volumes: %w", err)
		}
		for _, name := range found {
			list = append(list, Volume{space, name, filepath.Join(root, space, name)})
		}
	}
	return list, nil
}

// ClaimUsers returns the existing pods with a volume of a claim, whether they run or not.
func (d Dirs) ClaimUsers(namespace, name string) ([]Pod, error) {
	all, err := d.Pods()
	if err != nil {
		return nil, err
	}
	var users []Pod
	for _, p := range all {
		plan, err := p.Plan()
		if p.Namespace != namespace || err != nil || plan.InCluster() != d.ofCluster { // a pod that is being made or removed
			continue
		}
		for _, v := range plan.Volumes {
			if v.Kind == pod.ClaimVolume && v.Claim == name {
				users = append(users, p)
				break
			}
		}
	}
	return users, nil
}

// AcquireClaim makes the pod, of uid, the only one that uses a claim, until ReleaseClaim or the
// pod's end. The error is errClaimInUse if another pod has it.
func (p Pod) AcquireClaim(name, uid string) error {
	lock, err := LockExclusive(filepath.Join(p.dirs.Runtime, "claims.lock"))
	if err != nil {
		return fmt.Errorf("take claim %s: %w", name, err)
	}
	defer lock.Close()
	mark := p.claimFile(name)
	if b, err := os.ReadFile(mark); err == nil {
		owner, of, _ := strings.Cut(string(b), " ")
		other := p.dirs.Pod(p.Namespace, owner)
		if plan, err := other.Plan(); err == nil && of != uid && plan.UID == of && other.Alive() {
			return errClaimInUse
		}
	}
	err = makeDirs(filepath.Dir(mark))
	if err == nil {
		err = WriteVolatile(mark, []byte(p.Name+" "+uid))
	}
	if err != nil {
		return fmt.Errorf("take claim %s: %w", name, err)
	}
	return nil
}

// ReleaseClaim undoes AcquireClaim if the pod has the claim.
func (p Pod) ReleaseClaim(name, uid string) error {
	mark := p.claimFile(name)
	b, err := os.ReadFile(mark)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(b) != p.Name+" "+uid {
		return nil
	}
	if err == nil {
		err = os.Remove(mark)
	}
	if err != nil {
		return fmt.Errorf("drop claim %s: %w", name, err)
	}
	return nil
}

func (p Pod) claimFile(name string) string {
	return filepath.Join(p.dirs.objectsIn(p.dirs.Runtime), "claims", p.Namespace, name)
}
