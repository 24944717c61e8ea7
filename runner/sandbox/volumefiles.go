package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/volumes"
)

// WriteFiles writes the files of a volume from the current state of its sources.
func (s *Sandbox) WriteFiles(v *pod.Volume) error {
	files, err := s.fileContents(v)
	if err != nil {
		return err
	}
	dir := s.VolumePath(v)
	// 0777, as the kubelet's: it is mounted read-only.
	if err := volumes.MakeDir(dir, 0o777); err != nil {
		return err
	}
	if err := s.ChownToPod(dir); err != nil {
		return err
	}
	var group *volumes.Group
	if g := s.Plan.FSGroup; g != nil {
		group = &volumes.Group{ID: s.MapID(g.ID), ReadOnly: true}
	}
	return volumes.WriteFiles(dir, files, v.Dirs, group, s.MapID(0))
}

// fileContents collects the files of a volume.
func (s *Sandbox) fileContents(v *pod.Volume) (map[string]volumes.File, error) {
	files := map[string]volumes.File{}
	for i := range v.Sources {
		if err := s.addSource(files, &v.Sources[i]); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s *Sandbox) addSource(files map[string]volumes.File, src *pod.FileSource) error {
	if src.Kind == pod.FromPod {
		for _, i := range src.Items {
			files[i.Path] = volumes.File{Data: []byte(i.Text), Mode: i.Mode, UID: s.MapID(i.User)}
		}
		return nil
	}
	data, err := s.objectData(src)
	if err != nil {
		return err
	}
	if len(src.Items) == 0 {
		for key, value := range data {
			files[path.Clean(key)] = volumes.File{Data: value, Mode: src.Mode, UID: s.MapID(src.User)}
		}
		return nil
	}
	for _, i := range src.Items {
		value, ok := data[i.Key]
		switch {
		case ok:
			files[i.Path] = volumes.File{Data: value, Mode: i.Mode, UID: s.MapID(i.User)}
		case src.Optional:
		case src.Kind == pod.FromSecret:
			return fmt.Errorf("references non-existent secret key: %s", i.Key)
		default:
			return fmt.Errorf("configmap references non-existent config key: %s", i.Key)
		}
	}
	return nil
}

// objectData returns the data of the object of a source; none if the object is missing and optional.
func (s *Sandbox) objectData(src *pod.FileSource) (map[string][]byte, error) {
	kind, word := pod.KindConfigMap, "configmap"
	if src.Kind == pod.FromSecret {
		kind, word = pod.KindSecret, "secret"
	}
	o, err := s.Pod.Object(kind, src.Name)
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
