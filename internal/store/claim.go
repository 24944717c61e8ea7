package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/pod"
)

// Claims are directories that remain when their pods go. A PersistentVolumeClaim, an object,
// describes a claim.

// errClaimInUse means that another pod uses a claim exclusively (kubelet's scheduler:
// VolumeRestrictions).
var errClaimInUse = errors.New("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")

// ClaimDir returns the directory of a claim. Its files belong to ids of the pods' user namespace.
func (d Dirs) ClaimDir(namespace, name string) (string, error) {
	if !isSafeName(namespace) || !isSafeName(name) {
		return "", fmt.Errorf("%q in namespace %q is not a valid name of a claim", name, namespace)
	}
	return filepath.Join(d.Data, "volumes", namespace, name), nil
}

// ClaimDir returns the directory of a claim of the pod's namespace. The name must be validated.
func (p Pod) ClaimDir(name string) string {
	dir, err := p.dirs.ClaimDir(p.Namespace, name)
	if err != nil {
		panic("store: " + err.Error())
	}
	return dir
}

// Volume is a claim that has a directory.
type Volume struct{ Namespace, Name, Dir string }

// Volumes returns the claims that have a directory, by namespace and name.
func (d Dirs) Volumes() ([]Volume, error) {
	root := filepath.Join(d.Data, "volumes")
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
		if p.Namespace != namespace || err != nil { // a pod that is being made or removed
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
	return filepath.Join(p.dirs.Runtime, "claims", p.Namespace, name)
}
