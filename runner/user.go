package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/moby/sys/user"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// maxUserFile bounds what is read of an image's passwd and group files: an image
// may hold anything there.
const maxUserFile = 1 << 20

// resolveUser finds out who c's process is to be, by the passwd and group files
// of its own root file system.
func resolveUser(root string, c *pod.Container) (identity, error) {
	passwd, err := readUserFile(root, "/etc/passwd")
	if err != nil {
		return identity{}, err
	}
	group, err := readUserFile(root, "/etc/group")
	if err != nil {
		return identity{}, err
	}
	u, err := user.GetExecUser(c.User, &user.ExecUser{Home: "/"}, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return identity{}, fmt.Errorf("find user %q in the image: %w", c.User, err)
	}
	if c.NonRoot && u.Uid == 0 {
		return identity{}, errors.New("container has runAsNonRoot and image will run as root")
	}
	who := identity{uid: u.Uid, gid: u.Gid, groups: u.Sgids, home: u.Home}
	for _, g := range c.SupplementalGroups {
		who.groups = append(who.groups, int(g))
	}
	return who, nil
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
