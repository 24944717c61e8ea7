package cli

import (
	"errors"
	"io/fs"
	"time"

	"github.com/podrun/podrun/internal/store"
	manifeststatus "github.com/podrun/podrun/manifest/status"
	"github.com/podrun/podrun/pod"
)

// now is the workload with what is known of it, for those who show it.
func (v *view) now() *manifeststatus.Workload {
	d := v.decide(time.Now())
	n := &manifeststatus.Workload{Object: v.object, Spec: v.spec, State: &v.state, Counts: d.Counts}
	for _, j := range v.jobs {
		if over, _ := j.state.Ended(); !over {
			n.Jobs = append(n.Jobs, j.object.Name)
		}
	}
	return n
}

// workloadNamed is a workload that the user has named.
func workloadNamed(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*view, error) {
	if _, err := object(dirs, kind, namespace, name); err != nil {
		return nil, err
	}
	w, err := dirs.Workload(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	v, err := viewOf(dirs, w)
	if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
		_, err = object(dirs, kind, namespace, name)
	}
	return v, err
}
