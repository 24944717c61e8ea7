package sandbox

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

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/volumes"
)

// Namespaces are the paths of the namespaces that the pod's containers share. User is "" if the containers are
// in the supervisor's user namespace.
type Namespaces struct{ Net, IPC, UTS, User string }

// PodNamespaces returns the namespaces that pod init has made. Net is "" for the host's network, in which
// the supervisor is.
func PodNamespaces(plan *pod.Plan) Namespaces {
	ns := Namespaces{podinit.NetNS(), podinit.IPCNS(), podinit.UTSNS(), podinit.UserNS()}
	if plan.Network == pod.NetworkHost {
		ns.Net = ""
	}
	return ns
}

// NetFiles returns the namespaces that a thread of the supervisor joins to be in the pod's network.
func (s Namespaces) NetFiles() []string {
	if s.Net == "" {
		return nil
	}
	return []string{s.Net}
}

// RootIsHostRoot reports whether root in this user namespace is root outside of it, too.
var RootIsHostRoot = sync.OnceValue(func() bool {
	b, _ := os.ReadFile("/proc/self/uid_map")
	return mapKeepsRoot(string(b))
})

// mapKeepsRoot is RootIsHostRoot for a uid_map (user_namespaces(7)). It returns true for a text that cannot be
// parsed.
func mapKeepsRoot(uidMap string) bool {
	first := strings.Fields(uidMap)
	return len(first) < 2 || first[1] == "0"
}

// IDMapped reports whether this user namespace has an id; file is uid_map or gid_map.
func IDMapped(file string, id int) bool {
	b, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		var first, outside, count int64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && int64(id) >= first && int64(id)-first < count {
			return true
		}
	}
	return false
}

// SetgroupsAllowed reports whether the user namespace lets processes set their groups.
var SetgroupsAllowed = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/proc/self/setgroups")
	return errors.Is(err, os.ErrNotExist) || strings.TrimSpace(string(b)) != "deny"
})

// A pod with hostUsers: false has a range of the supervisor's ids, which no other such pod has. The pod's own
// user namespace numbers the range from 0 on. Files that are made for the pod belong to ids of the range. The
// files of podrun and of other pods belong to ids that do not exist in the pod's namespace.

// MapID converts an id of the pod to the supervisor's user namespace.
func (s *Sandbox) MapID(id int) int {
	if u := s.Plan.Users; u != nil {
		return u.First + id
	}
	return id
}

// IDMapped reports whether the pod has an id; file is uid_map or gid_map.
func (s *Sandbox) IDMapped(file string, id int) bool {
	if u := s.Plan.Users; u != nil && (id < 0 || id >= u.Count) {
		return false
	}
	return IDMapped(file, s.MapID(id))
}

// ChownToPod gives a file that the supervisor has made to the pod's own root, where there is one.
func (s *Sandbox) ChownToPod(path string) error {
	if s.Plan.Users == nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("give %s to the pod's users: %w", path, err)
	}
	if st.Uid != 0 {
		return nil // it was given already; later changes are the pod's own
	}
	return os.Lchown(path, s.MapID(0), s.MapID(0))
}

// layersMu lets one of a pod's containers copy an image while the others wait for the copy.
var layersMu sync.Mutex

// Layers returns the layers of an image for a container. A pod with ids of its own gets a copy whose files
// belong to these ids. The pod's first container of the image makes the copy, which stays as long as the pod.
func (s *Sandbox) Layers(layers []string) ([]string, error) {
	u := s.Plan.Users
	if u == nil {
		return s.labelLayers(layers)
	}
	layersMu.Lock()
	defer layersMu.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", u.First, u.Count, strings.Join(layers, "\n")))
	dir := filepath.Join(s.Pod.RootfsDir(), "own-"+hex.EncodeToString(sum[:16]))
	var many *volumes.IDOutOfRange
	err := volumes.ShiftLayers(dir, layers, u.First, u.Count)
	if errors.As(err, &many) {
		return nil, NewConfigError(fmt.Errorf("%s of the image belongs to the id %d, and the pod has only %d of its own (hostUsers: false): give its user more of them in /etc/subuid and /etc/subgid", many.Path, many.ID, many.Count))
	}
	if err != nil {
		return nil, err
	}
	return s.labelLayers([]string{dir})
}

// makeTraversableDir makes a directory that a pod with ids of its own can reach. libcontainer opens a root file
// system by its path, as the pod's root, who may not enter the user's directories.
func (s *Sandbox) makeTraversableDir() error {
	if s.Plan.Users == nil {
		return nil
	}
	_, err := volumes.MountTraversable()
	return err
}

func (s *Sandbox) removeTraversableDir() error {
	if s.Plan.Users == nil {
		return nil
	}
	return volumes.UnmountTraversable()
}
