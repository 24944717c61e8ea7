package container

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/moby/sys/user"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// maxUserFile limits how much of an image's passwd and group files is read: an image may contain anything
// there.
const maxUserFile = 1 << 20

// resolveUser returns the identity of c's process, from the passwd and group files of c's root file system.
// mapped reports which ids the pod has.
func resolveUser(root string, c *pod.Container, mapped func(file string, id int) bool) (Identity, error) {
	passwd, err := readUserFile(root, "/etc/passwd")
	if err != nil {
		return Identity{}, err
	}
	group, err := readUserFile(root, "/etc/group")
	if err != nil {
		return Identity{}, err
	}
	u, err := user.GetExecUser(c.User, &user.ExecUser{}, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return Identity{}, fmt.Errorf("find user %q in the image: %w", c.User, err)
	}
	if c.NonRoot && u.Uid == 0 {
		return Identity{}, errors.New("container has runAsNonRoot and image will run as root")
	}
	// The primary group is among the supplementary groups. Otherwise a set-group-id program would leave it, and
	// so get access that a file denies to that group (CVE-2022-36109).
	id := Identity{uid: u.Uid, gid: u.Gid, groups: []int{u.Gid}}
	if !c.GroupsStrict {
		id.groups = append(id.groups, u.Sgids...)
	}
	for _, name := range c.Groups {
		found, err := user.GetAdditionalGroups([]string{name}, bytes.NewReader(group))
		if err != nil {
			return Identity{}, fmt.Errorf("find group %q in the image's /etc/group: %w%s", name, err, hostGroup(name))
		}
		id.groups = append(id.groups, found...)
	}
	for _, g := range c.SupplementalGroups {
		id.groups = append(id.groups, int(g))
	}
	id.groups = distinct(id.groups)
	if n := len(id.groups); n > maxGroups {
		return Identity{}, fmt.Errorf("user %q is in %d groups of the image: a process has %d at the most", c.User, n, maxGroups)
	}
	return id, id.checkMapped(mapped)
}

// hostGroup returns advice about a group that the image does not have, if the host has it.
func hostGroup(name string) string {
	text, err := readUserFile("/", "/etc/group")
	if err != nil {
		return ""
	}
	groups, err := user.ParseGroupFilter(bytes.NewReader(text), func(g user.Group) bool { return g.Name == name })
	if err != nil || len(groups) == 0 {
		return ""
	}
	return fmt.Sprintf("; on this host its number is %d: use the number", groups[0].Gid)
}

// PodUser returns the identity for the pod's status. Where the user namespace does not allow setgroups,
// there are no supplementary groups.
func (w Identity) PodUser() *pod.User {
	u := &pod.User{UID: w.uid, GID: w.gid}
	if sandbox.SetgroupsAllowed() {
		u.Groups = w.groups
	}
	return u
}

// maxGroups is the kernel's NGROUPS_MAX (include/uapi/linux/limits.h).
const maxGroups = 1 << 16

// distinct removes duplicates and keeps the order.
func distinct(ids []int) []int {
	groups := map[int]bool{}
	return slices.DeleteFunc(ids, func(id int) bool {
		again := groups[id]
		groups[id] = true
		return again
	})
}

// checkMapped returns an error for ids that the pod's user namespace does not have.
func (w Identity) checkMapped(mapped func(file string, id int) bool) error {
	if !mapped("uid_map", w.uid) {
		return fmt.Errorf("user %d is not among the ids of this pod: give its user more of them in /etc/subuid", w.uid)
	}
	for _, g := range append([]int{w.gid}, w.groups...) {
		if !mapped("gid_map", g) {
			return fmt.Errorf("group %d is not among the ids of this pod: give its user more of them in /etc/subgid", g)
		}
	}
	return nil
}

func readUserFile(root, path string) ([]byte, error) {
	b, err := volumes.ReadFileIn(root, path, maxUserFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // scratch images have none
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of the image: %w", path, err)
	}
	return b, nil
}

// homeDirs caches the home directories of a container's users, from its own passwd file.
type homeDirs struct{ found *sync.Map } // int → string

// lookup returns the home directory of a user. pid is the container's first process.
func (h homeDirs) lookup(pid, uid int) string {
	if home, ok := h.found.Load(uid); ok {
		return home.(string)
	}
	text, err := readUserFile(fmt.Sprintf("/proc/%d/root", pid), "/etc/passwd")
	if err != nil {
		return "/"
	}
	users, err := user.ParsePasswdFilter(bytes.NewReader(text), func(u user.User) bool { return u.Uid == uid })
	if err != nil || len(users) == 0 {
		return "/" // not cached: it may exist later
	}
	h.found.Store(uid, users[0].Home)
	return users[0].Home
}
