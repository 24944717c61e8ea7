package sandbox

import (
	"fmt"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/volumes"
)

// relabelVolume gives a volume on disk, and everything in it, the SELinux label of the containers that
// mount it, as container runtimes do for the kubelet.
func (s *Sandbox) relabelVolume(v *pod.Volume) error {
	left, err := volumes.Relabel(s.VolumePath(v), v.FileLabel)
	if left > 0 {
		s.addWarning(fmt.Sprintf("%d files of %s keep their SELinux label: they belong to users that the pod does not have", left, v.Name))
	}
	return err
}

// labelLayers gives image layers the label that lets containers read them. It may be missing from layers that
// were stored earlier.
func (s *Sandbox) labelLayers(layers []string) ([]string, error) {
	kept, err := volumes.LabelLayers(layers, s.Plan.LayerLabel)
	if err != nil {
		return nil, NewConfigError(err)
	}
	if len(kept) > 0 {
		text := fmt.Sprintf("layers of an image keep their SELinux label (%d of them), and containers may be unable to use them: %v", len(kept), kept[0])
		s.Warn(text)
	}
	return layers, nil
}
