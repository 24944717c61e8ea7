package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// PutConfigMap implements node.Engine.
func (e *engine) PutConfigMap(ctx context.Context, o *corev1.ConfigMap) error {
	o.APIVersion, o.Kind = "v1", string(pod.KindConfigMap)
	return e.put(ctx, o)
}

// PutSecret implements node.Engine.
func (e *engine) PutSecret(ctx context.Context, o *corev1.Secret) error {
	o.APIVersion, o.Kind = "v1", string(pod.KindSecret)
	return e.put(ctx, o)
}

// put stores an object of the cluster after the checks of a manifest, and notifies the pods that refer to it.
func (e *engine) put(ctx context.Context, o metav1.Object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode %s: %w", o.GetName(), err)
	}
	loaded, err := manifest.LoadInNamespace("the cluster's "+o.GetName(), text, o.GetNamespace(), nil)
	if err != nil {
		return err
	}
	next := loaded[0].Stored
	lock, err := e.dirs.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	changed, err := e.replace(next, o.GetUID())
	if err != nil || !changed {
		return err
	}
	objects.NotifyPods(ctx, e.env, e.dirs, []*pod.Object{next})
	return nil
}

// PutClaim implements node.Engine.
func (e *engine) PutClaim(_ context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	stored := conversion.FromKubernetes(volume)
	if path := stored.PersistentVolume.Path; !filepath.IsAbs(path) {
		return fmt.Errorf("persistentvolume %s: %q is not an absolute path", volume.Name, path)
	}
	lock, err := e.dirs.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := e.replace(stored, volume.UID); err != nil {
		return err
	}
	_, err = e.replace(conversion.FromKubernetes(claim), claim.UID)
	return err
}

// replace stores an object of the cluster with its UID there, and reports whether it has changed. The caller holds the
// lock of the objects.
func (e *engine) replace(next *pod.Object, uid types.UID) (changed bool, err error) {
	next.Owner = &pod.Owner{Kind: pod.KindNode, UID: string(uid)}
	next.UID = cmp.Or(string(uid), objects.NewUID()) // the Secrets of tokens have none
	old, err := e.dirs.OfCluster().Object(next.Kind, next.Namespace, next.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		next.CreatedAt, next.Revision = time.Now().UTC(), 1
	case err != nil:
		return false, err
	default:
		next.UID = cmp.Or(string(uid), old.UID)
		next.CreatedAt, next.Revision = old.CreatedAt, old.Revision
		if reflect.DeepEqual(old, next) {
			return false, nil
		}
		next.Revision++
	}
	return true, e.dirs.OfCluster().PutObject(next)
}

// DeleteObject implements node.Engine.
func (e *engine) DeleteObject(ctx context.Context, r node.Reference) error {
	lock, err := e.dirs.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	o, err := e.dirs.OfCluster().Object(pod.ObjectKind(r.Kind), r.Namespace, r.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.dirs.OfCluster().DeleteObject(o.Kind, o.Namespace, o.Name); err != nil {
		return err
	}
	if o.Claim != nil {
		err := e.dirs.OfCluster().DeleteObject(pod.KindVolume, "", o.Claim.VolumeName)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	objects.NotifyPods(ctx, e.env, e.dirs, []*pod.Object{o})
	return nil
}

// deleteObjects removes all that this host has stored of the cluster but its pods.
func (e *engine) deleteObjects(ctx context.Context) error {
	errs := []error{e.PutServices(ctx, nil)}
	for _, kind := range []pod.ObjectKind{pod.KindConfigMap, pod.KindSecret, pod.KindClaim} {
		all, err := e.dirs.OfCluster().Objects(kind, "")
		errs = append(errs, err)
		for _, o := range all {
			errs = append(errs, e.DeleteObject(ctx, node.Reference{Kind: string(kind), Namespace: o.Namespace, Name: o.Name}))
		}
	}
	others, err := e.dirs.SetPodNetwork(store.PodNetwork{})
	if len(others) > 0 {
		err = report.New(report.Failure, "podrun down ends them; then leave again", "your pods still have addresses of the cluster's network: %s", names(others))
	}
	return errors.Join(append(errs, err)...)
}
