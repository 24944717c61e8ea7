package runner

import (
	"fmt"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// relabel gives a volume on disk, and all that is in it, the SELinux label of the
// containers that mount it, as container runtimes do for the kubelet.
func (s *sandbox) relabel(v *pod.Volume) error {
	left, err := volumes.Relabel(s.volumePath(v), v.FileLabel)
	if left > 0 {
		s.addWarning(fmt.Sprintf("%d files of %s keep their SELinux label: they belong to users that the pod does not have", left, v.Name))
	}
	return err
}

// addWarning notes what the user is to be warned of. Volumes are made at the same time.
func (s *sandbox) addWarning(text string) {
	s.making.Lock()
	defer s.making.Unlock()
	s.warnings = append(s.warnings, text)
}
