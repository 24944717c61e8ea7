package node

import (
	"context"
	"errors"

	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// PutServices implements node.Engine.
func (e *engine) PutServices(ctx context.Context, all []node.Service) error {
	changed, err := e.storeServices(all)
	objects.NotifyOfServices(ctx, e.env, e.dirs, changed)
	if e.routes != nil {
		err = errors.Join(err, e.routes.putServices(all))
	}
	return err
}

// updateServices makes the router direct connections to Services to the endpoints that it leads to now.
func (e *engine) updateServices(ctx context.Context) {
	if o, err := e.dirs.OfCluster().Object(pod.KindService, "default", "kubernetes"); err == nil { // every cluster has it
		objects.NotifyOfServices(ctx, e.env, e.dirs, []*pod.Object{o})
	}
}

// storeServices makes the cluster's Services those given. It returns those that have changed, and their former states.
func (e *engine) storeServices(all []node.Service) (changed []*pod.Object, err error) {
	lock, err := e.dirs.LockObjects()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	stored, err := e.dirs.OfCluster().Objects(pod.KindService, "")
	if err != nil && !errors.As(err, new(store.CorruptError)) {
		return nil, err
	}
	old := map[objectName]*pod.Object{}
	for _, o := range stored {
		old[objectName{o.Namespace, o.Name}] = o
	}
	var errs []error
	for _, s := range all {
		next := conversion.FromKubernetes(s.Service)
		name := objectName{next.Namespace, next.Name}
		next.Endpoints = s.Endpoints
		if had := old[name]; s.Endpoints == nil && had != nil {
			next.Endpoints = had.Endpoints
		}
		differs, err := e.replace(next, s.UID)
		if differs {
			changed = append(changed, next)
			if had := old[name]; had != nil { // its node ports may be closed
				changed = append(changed, had)
			}
		}
		delete(old, name)
		errs = append(errs, err)
	}
	for _, o := range old {
		errs = append(errs, e.dirs.OfCluster().DeleteObject(o.Kind, o.Namespace, o.Name))
		changed = append(changed, o)
	}
	return changed, errors.Join(errs...)
}

type objectName struct{ namespace, name string }
