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

// MountHost mounts at path, which is made, what the machine has mounted, without what
// podrun has mounted itself in this mount namespace: a pod's /proc over the machine's, and
// what is in its own directories, by their absolute paths. A path of the host that is
// looked up there leads to what the host has. What the host mounts later is seen, too.
func MountHost(path string, own []string) error {
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = unix.Mount("/", path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err == nil {
		err = hide(path, own)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mount the host's files on %s: %w", path, err), UnmountTree(path))
	}
	return nil
}

// hide takes podrun's own mounts out of a copy of all.
func hide(copied string, own []string) error {
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
		// The last of several is the pod's.
		mine := point == "/proc" && i > first && !slices.Contains(points[i+1:], p)
		for _, dir := range own {
			mine = mine || strings.HasPrefix(point, dir+"/")
		}
		if !mine {
			continue
		}
		// One that was mounted below another has gone with that.
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	return nil
}

// mountPoints lists where something is mounted, in the order in which it was, as far as
// one covers another.
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

// unescape gives a path of mountinfo, in which blanks are octal numbers.
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
