package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// writeFiles makes the files of a volume those of its sources, as they are now.
func (s *sandbox) writeFiles(v *pod.Volume) error {
	files, err := s.payload(v)
	if err != nil {
		return err
	}
	dir := s.volumePath(v)
	// 0777, as the kubelet's: it is mounted read-only.
	if err := volumes.MakeEmptyDir(dir, 0o777); err != nil {
		return err
	}
	if err := s.own(dir); err != nil {
		return err
	}
	var group *volumes.Group
	if g := s.plan.Group; g != nil {
		group = &volumes.Group{ID: s.id(g.ID), ReadOnly: true}
	}
	return volumes.WriteFiles(dir, files, v.Dirs, group, s.id(0))
}

// payload puts the files of a volume together.
func (s *sandbox) payload(v *pod.Volume) (map[string]volumes.File, error) {
	files := map[string]volumes.File{}
	for i := range v.Sources {
		if err := s.addSource(files, &v.Sources[i]); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *sandbox) addSource(files map[string]volumes.File, src *pod.FileSource) error {
	if src.Kind == pod.FromPod {
		for _, i := range src.Items {
			files[i.Path] = volumes.File{Data: []byte(i.Text), Mode: i.Mode, UID: s.id(i.User)}
		}
		return nil
	}
	data, err := s.keys(src)
	if err != nil {
		return err
	}
	if len(src.Items) == 0 {
		for key, value := range data {
			files[path.Clean(key)] = volumes.File{Data: value, Mode: src.Mode, UID: s.id(src.User)}
		}
		return nil
	}
	for _, i := range src.Items {
		value, ok := data[i.Key]
		switch {
		case ok:
			files[i.Path] = volumes.File{Data: value, Mode: i.Mode, UID: s.id(i.User)}
		case src.Optional:
		case src.Kind == pod.FromSecret:
			return fmt.Errorf("references non-existent secret key: %s", i.Key)
		default:
			return fmt.Errorf("configmap references non-existent config key: %s", i.Key)
		}
	}
	return nil
}

// keys are those of the object of a source. One that is not there and need not be has
// none.
func (s *sandbox) keys(src *pod.FileSource) (map[string][]byte, error) {
	kind, word := pod.KindConfigMap, "configmap"
	if src.Kind == pod.FromSecret {
		kind, word = pod.KindSecret, "secret"
	}
	o, err := s.store.Object(kind, src.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && src.Optional:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %q not found", word, src.Name)
	case err != nil:
		return nil, err
	case o.Secret != nil:
		return o.Secret.Data, nil
	case o.ConfigMap == nil:
		return nil, fmt.Errorf("%s %q has no data", word, src.Name)
	}
	data := map[string][]byte{}
	for key, value := range o.ConfigMap.Data {
		data[key] = []byte(value)
	}
	for key, value := range o.ConfigMap.BinaryData {
		data[key] = value
	}
	return data, nil
}

// sweepAfter is how long what was replaced stays: for those who were about to open it.
const sweepAfter = time.Second

// refresh brings the files of all volumes up to date with what they are made of. What
// cannot be had leaves a volume as it was, and is told.
func (e *engine) refresh() {
	e.mu.Lock()
	s := e.sandbox
	e.mu.Unlock()
	if s == nil {
		return
	}
	e.refreshing.Lock()
	defer e.refreshing.Unlock()
	plan := e.latest()
	var bad unmounted
	for i := range plan.Volumes {
		v := &plan.Volumes[i]
		if v.Kind != pod.Files {
			continue
		}
		if _, err := os.Lstat(s.volumePath(v)); err != nil {
			continue // the pod ends
		}
		if err := s.writeFiles(v); err != nil {
			bad.add(v.Name, err)
		}
	}
	if len(bad.lines) > 0 {
		e.emit(lifecycle.Event{Kind: lifecycle.VolumesFailed, Attempt: s.attempt, Message: bad.Error()})
	}
	e.work(1) // no doze until it is swept
	time.AfterFunc(sweepAfter, func() {
		defer e.work(-1)
		e.refreshing.Lock()
		defer e.refreshing.Unlock()
		for i := range plan.Volumes {
			if v := &plan.Volumes[i]; v.Kind == pod.Files {
				_ = volumes.SweepFiles(s.volumePath(v), v.Dirs) // the next one sweeps, too
			}
		}
	})
}
