package sandbox

import (
	"fmt"
	"slices"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// relabelVolume gives a volume on disk, and all that is in it, the SELinux label of the
// containers that mount it, as container runtimes do for the kubelet.
func (s *Sandbox) relabelVolume(v *pod.Volume) error {
	left, err := volumes.Relabel(s.VolumePath(v), v.FileLabel)
	if left > 0 {
		s.addWarning(fmt.Sprintf("%d files of %s keep their SELinux label: they belong to users that the pod does not have", left, v.Name))
	}
	return err
}

// labelLayers gives layers of images the label that containers may read, those of an image
// that was there before, too.
func (s *Sandbox) labelLayers(layers []string) ([]string, error) {
	kept, err := volumes.LabelLayers(layers, s.Plan.LayerLabel)
	if err != nil {
		return nil, NewConfigError(err)
	}
	if len(kept) > 0 {
		text := fmt.Sprintf("layers of an image keep their SELinux label (%d of them), and containers may be unable to use them: %v", len(kept), kept[0])
		s.addWarning(text) // while the sandbox is made its warnings are the pod's
		s.Warn(text)       // then the pod has its own
	}
	return layers, nil
}

// addWarning notes what the user is to be warned of, once. Volumes are made at the same time, and
// containers prepared.
func (s *Sandbox) addWarning(text string) {
	s.warningsMu.Lock()
	defer s.warningsMu.Unlock()
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// Warnings is what the user is to be warned of so far.
func (s *Sandbox) Warnings() []string {
	s.warningsMu.Lock()
	defer s.warningsMu.Unlock()
	return slices.Clone(s.warnings)
}
