package stage

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// EnterEnv is the environment that makes a program linked with stage/userns
// enter a user and mount namespace of the calling user before its main starts.
func EnterEnv() ([]string, error) { return enterEnv("userns") }

// enterEnv tells the constructor what to enter and which ids to map: 0 is the
// user, 1 and up are the subordinate ranges. Without newuidmap or without ranges
// 0 is the only id.
func enterEnv(enter string) ([]string, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	env := []string{"_PODRUN_ENTER=" + enter}
	if uid == 0 {
		return env, nil
	}
	var name string
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	uids, err := subordinate("/etc/subuid", name, uid)
	if err != nil {
		return nil, err
	}
	gids, err := subordinate("/etc/subgid", name, uid)
	if err != nil {
		return nil, err
	}
	tools := idTools()
	if tools == "" || len(uids) == 0 || len(gids) == 0 {
		tools, uids, gids = "", nil, nil
	}
	return append(env,
		"_PODRUN_UIDMAP="+idMap(uid, uids),
		"_PODRUN_GIDMAP="+idMap(gid, gids),
		"_PODRUN_IDTOOLS="+tools,
	), nil
}

// idTools is the directory that has both newuidmap and newgidmap, or "".
func idTools() string {
	path, err := exec.LookPath("newuidmap")
	if err != nil {
		return ""
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	if _, err := exec.LookPath(filepath.Join(dir, "newgidmap")); err != nil {
		return ""
	}
	return dir
}

// idRange is one line of /etc/subuid: Count ids from First on.
type idRange struct{ First, Count uint64 }

func idMap(self int, ranges []idRange) string {
	words := []string{"0", strconv.Itoa(self), "1"}
	next := uint64(1)
	for _, r := range ranges {
		words = append(words, fmt.Sprint(next), fmt.Sprint(r.First), fmt.Sprint(r.Count))
		next += r.Count
	}
	return strings.Join(words, " ")
}

// subordinate reads the ranges of a user, who may be listed by name or by number.
func subordinate(file, name string, uid int) ([]idRange, error) {
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read subordinate ids: %w", err)
	}
	var ranges []idRange
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || (f[0] != name && f[0] != strconv.Itoa(uid)) {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 == nil && err2 == nil && count > 0 {
			ranges = append(ranges, idRange{first, count})
		}
	}
	return ranges, nil
}
