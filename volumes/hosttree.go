package volumes

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MountHost mounts on path, which it makes, a copy of the host's mounts without podrun's own mounts
// in this mount namespace: a pod's /proc over the host's, and those in podrun's own directories,
// given by their absolute paths. A path that is looked up there leads to the host's file. Later
// mounts of the host appear there, too.
func MountHost(path string, hidden []string) error {
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = unix.Mount("/", path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err == nil {
		err = hide(path, hidden)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mount the host's files on %s: %w", path, err), UnmountTree(path))
	}
	return nil
}

// hide removes podrun's own mounts from a copy of all mounts.
func hide(copied string, hidden []string) error {
	points, err := mountPoints()
	if err != nil {
		return err
	}
	first := slices.Index(points, copied+"/proc")
	for i, p := range points {
		point, ok := strings.CutPrefix(p, copied)
		if !ok {
			continue
		}
		// The last of several mounts is the pod's.
		mine := point == "/proc" && i > first && !slices.Contains(points[i+1:], p)
		for _, dir := range hidden {
			mine = mine || strings.HasPrefix(point, dir+"/")
		}
		if !mine {
			continue
		}
		// A mount below another was removed with it.
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	return nil
}

// mountPoints lists the mount points, oldest first, so that a later one covers an earlier one.
func mountPoints() ([]string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			points = append(points, unescape(f[4]))
		}
	}
	return points, nil
}

// unescape decodes a path of mountinfo, in which blanks are octal numbers.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if len(after) >= 3 {
			if n, err := strconv.ParseUint(after[:3], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = after[3:]
				continue
			}
		}
		b.WriteByte('\\')
		s = after
	}
}
