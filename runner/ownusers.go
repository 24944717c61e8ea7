package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/volumes"
)

// A pod with users of its own (hostUsers: false) has a range of the ids that the user's pods
// have, which no other such pod has, and numbers them from 0 on, in a user namespace of its
// own. What is made for it belongs to them; podrun's own files, and those of other pods, to
// ids that do not exist in there.

// id is the supervisor's number of one of the pod's ids.
func (s *sandbox) id(id int) int {
	if u := s.plan.Users; u != nil {
		return u.First + id
	}
	return id
}

// idMapped says whether the pod has an id; file is uid_map or gid_map.
func (s *sandbox) idMapped(file string, id int) bool {
	if u := s.plan.Users; u != nil && (id < 0 || id >= u.Count) {
		return false
	}
	return idMapped(file, s.id(id))
}

// own gives what the supervisor has made to the pod's own root, where it has one.
func (s *sandbox) own(path string) error {
	if s.plan.Users == nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("give %s to the pod's users: %w", path, err)
	}
	if st.Uid != 0 {
		return nil // it was given, and what became of it since is the pod's business
	}
	return os.Lchown(path, s.id(0), s.id(0))
}

// ownImages lets one of a pod's containers copy an image, and the others wait for it.
var ownImages sync.Mutex

// ownLayers are layers as the pod's own users have them: one copy, made for the pod's first
// container of the image, which stays as long as the pod.
func (s *sandbox) ownLayers(layers []string) ([]string, error) {
	u := s.plan.Users
	if u == nil {
		return s.labelLayers(layers)
	}
	ownImages.Lock()
	defer ownImages.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", u.First, u.Count, strings.Join(layers, "\n")))
	dir := filepath.Join(s.store.RootfsDir(), "own-"+hex.EncodeToString(sum[:16]))
	var many *volumes.TooManyIDs
	err := volumes.ShiftLayers(dir, layers, u.First, u.Count)
	if errors.As(err, &many) {
		return nil, newConfigError(fmt.Errorf("%s of the image belongs to the id %d, and the pod has only %d of its own (hostUsers: false): give its user more of them in /etc/subuid and /etc/subgid", many.Path, many.ID, many.Count))
	}
	if err != nil {
		return nil, err
	}
	return s.labelLayers([]string{dir})
}

// makeUsers prepares a directory which the pod's users can reach: libcontainer goes to a
// root file system by its path, as root of the pod, who may not pass the user's directories.
func (s *sandbox) makeUsers() error {
	if s.plan.Users == nil {
		return nil
	}
	_, err := volumes.MountOpen()
	return err
}

func (s *sandbox) removeUsers() error {
	if s.plan.Users == nil {
		return nil
	}
	return volumes.UnmountOpen()
}
